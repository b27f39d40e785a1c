import type { JsonValue } from "@bufbuild/protobuf";
import { forEachOf } from "../../concurrency/for-each.ts";
import { parseJsonFile } from "../../format/files/damaged-file.ts";
import { keyIn, listNames, type ObjectStore } from "../../format/storage.ts";
import { keyOfName, READS } from "./placed-files.ts";

/** The failed rows of a job. */
export interface FailedRows {
  readonly jobId: string;
  /** When the job ended, in milliseconds since 1970. */
  readonly at: number;
  readonly column: string;
  readonly function: string;
  readonly functionVersion: string;
  readonly tableVersion: number;
  /** As the driver has reported them. */
  readonly errors: JsonValue;
  readonly fragments: JsonValue;
}

/** Failed rows as objects in the storage of the catalog, one for each job. */
export interface RowErrors {
  /** Records the failed rows of a job; the oldest jobs of the table beyond a number are forgotten. */
  put(location: string, rows: FailedRows): Promise<void>;
  /** Returns what the jobs of a table have recorded, the newest first. */
  list(location: string): Promise<readonly FailedRows[]>;
}

/** Number of jobs of a table whose failed rows are kept. */
const MAX_JOBS = 50;

/** Opens the failed rows in a directory, given as an object key. */
export function createRowErrors(store: ObjectStore, directory: string): RowErrors {
  const folder = (location: string) => keyIn(directory, keyOfName([location]));
  async function list(location: string): Promise<FailedRows[]> {
    const names = await listNames(store, folder(location));
    const found: (FailedRows | undefined)[] = [];
    await forEachOf(names.entries(), READS, async ([place, name]) => {
      const key = keyIn(folder(location), name);
      const bytes = await store.get(key);
      found[place] = bytes && (parseJsonFile(key, bytes) as unknown as FailedRows);
    });
    return found.filter((rows) => rows !== undefined).sort((one, other) => other.at - one.at);
  }
  return {
    async put(location, rows) {
      await store.put(keyIn(folder(location), rows.jobId), Buffer.from(JSON.stringify(rows)));
      for (const { jobId } of (await list(location)).slice(MAX_JOBS))
        await store.delete(keyIn(folder(location), jobId));
    },
    list,
  };
}
