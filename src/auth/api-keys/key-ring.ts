import type { Logger } from "pino";
import { watchFiles } from "../../namespace/watch-files.ts";
import { hasHash, idOf } from "./key.ts";
import { type KeyRecord, readKeyFile } from "./key-file.ts";

/** Reason why a key is refused. */
export type KeyRefusal = "unknown" | "expired";

/** The keys of a file. */
export interface KeyRing {
  /** Returns the record of a key, or the reason why it is refused. */
  find(text: string): KeyRecord | KeyRefusal;
  close(): void;
}

/** Options of {@link openKeyRing}. */
export interface KeyRingOptions {
  readonly path: string;
  readonly log: Logger;
  /** Interval between looks at the file, in milliseconds. Default: 1 s. */
  readonly intervalMs?: number;
}

/**
 * Reads a file of keys, and again when it changes. If the changed file cannot be read, the keys stay as they were, and the log says
 * why.
 *
 * @throws Error with a single line if the file cannot be read at first.
 */
export async function openKeyRing({ path, log, intervalMs }: KeyRingOptions): Promise<KeyRing> {
  let byId = indexOf(await readKeyFile(path));

  async function readAgain(): Promise<void> {
    try {
      byId = indexOf(await readKeyFile(path));
      log.info({ path, keys: byId.size }, "the API keys were read again");
    } catch (error) {
      log.error({ path, err: error }, "the API keys stay as they were, because their file cannot be read");
    }
  }

  return {
    find(text) {
      const id = idOf(text);
      const record = id === undefined ? undefined : byId.get(id);
      if (record === undefined || !hasHash(text, record.hash)) return "unknown";
      return record.expires !== undefined && Date.parse(record.expires) <= Date.now() ? "expired" : record;
    },
    close: watchFiles([path], readAgain, intervalMs),
  };
}

function indexOf(keys: readonly KeyRecord[]): ReadonlyMap<string, KeyRecord> {
  return new Map(keys.map((key) => [key.id, key]));
}
