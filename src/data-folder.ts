/** The data folder: made where it is missing, for its owner's eyes only. */
import { mkdir, stat } from 'node:fs/promises'
import { dirname } from 'node:path'

/**
 * Node's own `recursive` runs for ever where a folder can be neither found nor made (below /proc, seen on 24.21):
 * after an ENOENT it goes to the parent, finds it, and begins again.
 */
export async function makeFolder(path: string): Promise<void> {
  if (await isThere(path)) return
  await makeFolder(dirname(path))
  try {
    await mkdir(path, { mode: 0o700 })
  } catch (error) {
    if (!(await isThere(path))) throw error // else another process was faster
  }
}

const isThere = (path: string): Promise<boolean> =>
  stat(path).then(
    () => true,
    () => false,
  )
