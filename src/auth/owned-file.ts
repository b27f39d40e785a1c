import { type FileHandle, open, realpath, rename, rm, stat } from "node:fs/promises";
import { dirname } from "node:path";

/**
 * Replaces a file as a whole: a reader sees all of the change or nothing, and two changes at the same time do not lose one another. A new
 * file can be read by its owner alone; an existing one keeps its mode and its owner. A symbolic link stays, and the file behind it is replaced.
 *
 * @param compose returns the new content, or undefined to leave the file as it is; no other process changes the file meanwhile.
 * @throws Error with a single line if another process changes the file, and every error of `compose`.
 */
export async function replaceOwnedFile(
  path: string,
  compose: () => Promise<string | undefined>,
): Promise<void> {
  const target = await targetOf(path);
  const lock = `${target}.lock`;
  const handle = await open(lock, "wx", 0o600).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "EEXIST") throw error;
    throw new Error(`another process changes ${path}; if none does, remove ${lock}`);
  });
  try {
    const content = await compose();
    if (content === undefined) return await rm(lock);
    await handle.writeFile(content);
    await takeAfter(handle, target);
    await handle.sync();
    await rename(lock, target);
    await syncDirectory(dirname(target));
  } catch (error) {
    await rm(lock, { force: true });
    throw error;
  } finally {
    await handle.close();
  }
}

/** Returns the file that a path leads to; the path itself, if there is no file yet. */
export async function targetOf(path: string): Promise<string> {
  return realpath(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return path;
    throw error;
  });
}

/** Gives a new file the mode and the owner of the one that it replaces, so that the same programs can read it. */
async function takeAfter(handle: FileHandle, replaced: string): Promise<void> {
  const found = await stat(replaced).catch(() => undefined);
  if (found === undefined) return;
  const own = await handle.stat();
  if (own.uid !== found.uid || own.gid !== found.gid) await handle.chown(found.uid, found.gid);
  await handle.chmod(found.mode & 0o777);
}

/** Without it, a loss of power may bring the replaced file back. */
async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, "r");
  await directory.sync().finally(() => directory.close());
}
