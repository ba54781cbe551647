/**
 * Rows as the JSON that `json_to_recordset` reads. A member that is absent reads as NULL, so what is null is left out: that
 * halves what goes over the wire and is parsed. (The rows of the two ordinary statements, claims and first outcomes, are made
 * without nulls to begin with: to take them out again was a tenth of what the process spends on a send beside its sockets.)
 */
export function jsonRows(rows: readonly Readonly<Record<string, unknown>>[]): string {
  return JSON.stringify(rows.map(withoutNulls))
}

function withoutNulls(row: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const left: Record<string, unknown> = {}
  for (const name in row) if (row[name] !== null) left[name] = row[name]
  return left
}
