import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A directory of its own for one test file, under the system's directory for such things. */
export async function temporaryDirectory(): Promise<{ path: string; remove(): Promise<void> }> {
  const path = await mkdtemp(join(tmpdir(), "lance-gateway-"));
  return { path, remove: () => rm(path, { recursive: true, force: true }) };
}
