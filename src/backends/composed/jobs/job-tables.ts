import { type Identifier, joinIdentifier, parseIdentifier } from "../../../namespace/identifier.ts";
import { manifestName, versionsDirectory } from "../../dir/format/dataset.ts";
import { keyIn, type ObjectStore } from "../../dir/format/storage.ts";
import type { Job } from "../../dir/jobs/job.ts";

/** Place of the record of a job. */
export interface JobPlace {
  /** Id of its record in the directory of the table. */
  readonly record: string;
  readonly table: Identifier;
}

/** The id of the record, and the name of the table in base64url. */
const JOB_ID = /^([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.([\w-]{1,400})$/;

/**
 * Returns the id of a job. It names the table, so that every gateway in front of the catalog finds the job's record, also after a restart,
 * with the rights that its caller has to the table.
 */
export function jobIdOf({ record, table }: JobPlace): string {
  return `${record}.${Buffer.from(joinIdentifier(table)).toString("base64url")}`;
}

/** Reads the id of a job; undefined for an id that no gateway gives to a job of a foreign catalog's table. */
export function parseJobId(id: string): JobPlace | undefined {
  const [, record, name] = JOB_ID.exec(id) ?? [];
  if (record === undefined || name === undefined) return undefined;
  try {
    const table = parseIdentifier(Buffer.from(name, "base64url").toString());
    return table.length === 0 ? undefined : { record, table };
  } catch {
    // No table has such a name.
    return undefined;
  }
}

/** Longest time by which a storage's clock may seem to go back, because it dates objects by whole seconds, in milliseconds. */
const SLACK_MS = 2_000;

/**
 * Returns when the first version of the table at a location was written, by the storage's clock; 0 if it is gone or cannot be read. It tells a
 * table from a former one that was dropped and had the same name and place.
 */
export async function beginningOf(store: ObjectStore, location: string): Promise<number> {
  for (const scheme of ["V2", "V1"] as const) {
    const key = keyIn(versionsDirectory({ root: location }), manifestName(1n, scheme));
    const info = await store.head(key).catch(() => undefined);
    if (info !== undefined) return info.modifiedMillis;
  }
  return 0;
}

/** Whether a job may be one of the table that began at a time. */
export function isSince(beginning: number, { createdAt }: Pick<Job, "createdAt">): boolean {
  return createdAt > beginning - SLACK_MS;
}
