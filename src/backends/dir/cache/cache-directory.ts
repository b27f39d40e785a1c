import { lstat, mkdir, stat } from "node:fs/promises";

/** Bits of a mode that let others than the owner change a directory. */
const WRITABLE_BY_OTHERS = 0o022;

/**
 * Creates the directory of a cache, or finds it, and makes sure that nobody else can put files or links into it.
 *
 * @throws Error with a single line
 */
export async function openCacheDirectory(directory: string): Promise<void> {
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const own = process.getuid?.();
  // A system without users has no such modes either.
  if (own === undefined) return;
  const { uid, mode } = await stat(directory);
  if (uid !== own) throw new Error(`${directory} belongs to another user than that of the gateway`);
  if ((mode & WRITABLE_BY_OTHERS) !== 0)
    throw new Error(
      `${directory} is writable for others than its owner; name a directory in it, or chmod 0700`,
    );
  const { uid: linker } = await lstat(directory);
  if (linker !== own && linker !== 0) throw new Error(`${directory} is a link of another user`);
}
