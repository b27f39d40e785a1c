import type { JsonValue } from "@bufbuild/protobuf";
import type { OfTable, TableFiles } from "./table-files.ts";

/** The failed rows of a job. */
export interface FailedRows extends OfTable {
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
  put(rows: FailedRows): Promise<void>;
  /** Returns what the jobs of a table have recorded, the newest first. */
  list(location: string): Promise<readonly FailedRows[]>;
}

/** Number of jobs of a table whose failed rows are kept. */
const MAX_JOBS = 50;

/** Keeps failed rows in the records about tables. */
export function createRowErrors(files: TableFiles<FailedRows>): RowErrors {
  const list = async (location: string) =>
    [...(await files.list(location))].sort((one, other) => other.at - one.at);
  return {
    async put(rows) {
      const { location, jobId } = rows;
      await files.put(jobId, rows);
      for (const older of (await list(location)).slice(MAX_JOBS)) await files.remove(location, older.jobId);
    },
    list,
  };
}
