import { dirname } from "node:path/posix";
import { setTimeout as sleep } from "node:timers/promises";
import { LanceError } from "../../../namespace/errors.ts";
import { UnsyncedError } from "./local-errors.ts";
import type { ObjectStore } from "./storage.ts";

/** How often the bytes of a version are put when the store fails, and the pause between, in milliseconds. */
const PUTS = 3;
const PUT_PAUSE = 200;

/**
 * Publishes a version: gives a manifest its name, unless another writer has taken the version's number. Every version
 * that this process makes comes through here; the engine makes its own.
 *
 * The version survives a loss of power when this returns true (docs/adr/0032). The store may fail without saying
 * whether it wrote. Then the publisher looks at what is there, and puts the bytes again. The uuid of the transaction in
 * a manifest tells its bytes from those of every other writer.
 *
 * @param manifest the key of the version's manifest file, and its bytes
 * @param written resolves when everything that the version refers to is durable; its failure is that of the call.
 *   Default: at once
 * @returns false if another writer has the number; nothing has been written then
 * @throws UnsyncedError when readers see the version and a loss of power may undo it; LanceError ServiceUnavailable, or
 *   the error of the store, when the version may be there, or may still arrive
 */
export async function publishVersion(
  store: ObjectStore,
  manifest: { readonly key: string; readonly bytes: Uint8Array },
  written: Promise<unknown> = Promise.resolve(),
): Promise<boolean> {
  const { key, bytes } = manifest;
  const isOurs = (found: Uint8Array) => Buffer.compare(found, bytes) === 0;
  for (let tries = 1; ; tries++) {
    try {
      if (await store.putIfAbsent(key, bytes, written)) return true;
      const found = await store.get(key);
      if (found !== undefined) return isOurs(found);
      // Taken and yet missing: another process removed it in between, or the store contradicts itself.
      if (tries === PUTS) throw new LanceError("ServiceUnavailable", REFUSED);
    } catch (error) {
      // A read now does not tell what is on the disk.
      if (error instanceof UnsyncedError) throw error;
      // When that has failed, the version was not tried.
      await written;
      const found = await store.get(key).catch(() => undefined);
      if (found !== undefined && !isOurs(found)) return false;
      if (found !== undefined) {
        // Another call may have put the same bytes, and not have synced their name yet.
        await store.files?.syncObjects([key], dirname(key));
        return true;
      }
      if (tries === PUTS) throw unavailable(error);
    }
    await sleep(PUT_PAUSE);
  }
}

const REFUSED = "the storage of the catalog refuses a version as taken and has none";

function unavailable(error: unknown): LanceError {
  if (error instanceof LanceError) return error;
  return new LanceError("ServiceUnavailable", "the storage of the catalog fails", { cause: error });
}
