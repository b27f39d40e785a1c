import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Creates a directory for one test file, below the system's temporary directory. */
export async function temporaryDirectory(): Promise<{ path: string; remove(): Promise<void> }> {
  const path = await mkdtemp(join(tmpdir(), "lance-gateway-"));
  return { path, remove: () => rm(path, { recursive: true, force: true }) };
}
