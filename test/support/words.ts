/** The words of a text, for tables that are long and plain. */
export const words = (text: string): string[] => text.trim().split(/\s+/)
