import { open, rename, rm } from "node:fs/promises";

/**
 * Replaces a file as a whole by one that its owner alone can read: a reader sees all of the change or nothing, and two changes at the
 * same time do not lose one another.
 *
 * @param compose returns the new content, or undefined to leave the file as it is; no other process changes the file meanwhile.
 * @throws Error with a single line if another process changes the file, and every error of `compose`.
 */
export async function replaceOwnedFile(
  path: string,
  compose: () => Promise<string | undefined>,
): Promise<void> {
  const lock = `${path}.lock`;
  const handle = await open(lock, "wx", 0o600).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "EEXIST") throw error;
    throw new Error(`another process changes ${path}; if none does, remove ${lock}`);
  });
  try {
    const content = await compose();
    if (content === undefined) return await rm(lock);
    await handle.writeFile(content);
    await handle.sync();
    await rename(lock, path);
  } catch (error) {
    await rm(lock, { force: true });
    throw error;
  } finally {
    await handle.close();
  }
}
