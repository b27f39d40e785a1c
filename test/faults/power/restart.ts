import { createLocalStore } from "../../../src/backends/dir/format/local/local-store.ts";
import { createDirectoryBackend } from "../../../src/backends/dir/index.ts";
import type { Log } from "./log.ts";
import { createRecorder } from "./recorder.ts";
import { optionsOf } from "./world.ts";

/**
 * Records the changes of a disk by a gateway that starts after a loss of power; all earlier changes are on the disk.
 */
export async function recordStart(root: string): Promise<Log> {
  const { disk, entries, look } = createRecorder(root);
  look();
  const durable = entries.length;
  const storage = { store: createLocalStore("/", disk), root, engineOptions: {} };
  await (await createDirectoryBackend(optionsOf(storage))).close();
  look();
  return { entries: [...entries], durable };
}
