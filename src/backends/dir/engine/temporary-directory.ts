import { mkdtemp, rmdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

/**
 * Checks that the engine can make temporary directories. It makes one when it is loaded, and ends the process if it cannot.
 *
 * @throws Error with a single line
 */
export async function checkTemporaryDirectory(): Promise<void> {
  const path = tmpdir();
  try {
    await rmdir(await mkdtemp(join(path, "lance-gateway-")));
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    const text = `the engine needs a directory for temporary files, and ${path} cannot be written (${code}); TMPDIR names another one`;
    throw new Error(text, { cause });
  }
}
