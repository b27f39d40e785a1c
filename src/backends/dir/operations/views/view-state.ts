import { isDeepStrictEqual } from "node:util";
import type { Manifest } from "../../../../gen/lance/format/table_pb.ts";
import type { Transaction } from "../../../../gen/lance/format/transaction_pb.ts";
import type { DatasetRef } from "../../format/dataset.ts";
import { columnFacts } from "../../format/files/manifest.ts";
import { readTransactionMessage } from "../../format/versions/transaction-records.ts";
import { readVersionIfThere } from "../../format/versions/version-files.ts";

/** The entry of a view's table metadata that records the source of its rows. */
export const STATE_KEY = "lance_gateway.view.state";

/**
 * The source of a view's rows. A refresh commits this entry with the rows, or after them if the engine replaces all. If others
 * than compactions and the like follow the version of the rows, another writer has changed the view, or a refresh did
 * not finish.
 */
export interface ViewState {
  /** The location of the source. */
  readonly source: string;
  readonly sourceVersion: string;
  /** Identity of that version ({@link versionIdentity}). */
  readonly sourceIdentity: string;
  /** The version of the view that contains the rows. */
  readonly rowsVersion: string;
  readonly query: string;
}

/** Encodes the entry of a view that has the rows of a version of its source. */
export function encodeState({
  source,
  origin,
  query,
  rowsVersion,
}: {
  /** The location of the source. */
  readonly source: string;
  /** The version of the source from which the rows come. */
  readonly origin: Manifest;
  readonly query: string;
  /** The version of the view that contains the rows. */
  readonly rowsVersion: bigint;
}): string {
  const state: ViewState = {
    source,
    sourceVersion: String(origin.version),
    sourceIdentity: versionIdentity(origin),
    rowsVersion: String(rowsVersion),
    query,
  };
  return JSON.stringify(state);
}

/** Returns where a view's rows come from; undefined before the first refresh, and if another program changed the entry. */
export function readState({ tableMetadata }: Manifest): ViewState | undefined {
  try {
    const state = JSON.parse(tableMetadata[STATE_KEY] ?? "null") as ViewState | null;
    return state !== null && isState(state) ? state : undefined;
  } catch {
    return undefined;
  }
}

function isState({ source, sourceVersion, sourceIdentity, rowsVersion, query }: ViewState): boolean {
  const versions = [sourceVersion, rowsVersion];
  return (
    versions.every((version) => typeof version === "string" && /^[1-9]\d{0,18}$/.test(version)) &&
    [source, sourceIdentity, query].every((text) => typeof text === "string")
  );
}

/** Whether a version of a view has the rows of the refresh that it records, and no other writer's. */
export function hasRefreshedRows(
  dataset: DatasetRef,
  { rowsVersion }: ViewState,
  { version }: Manifest,
): Promise<boolean> {
  return keepsRows(dataset, BigInt(rowsVersion), version);
}

/** Whether the version with the recorded number is the one from which the view's rows come, and not another of that number. */
export function isRecorded({ sourceIdentity }: ViewState, version: Manifest): boolean {
  return sourceIdentity === versionIdentity(version);
}

/**
 * Distinguishes a version from others of its number, which a table has that was created again or restored from a backup.
 */
export function versionIdentity({ transactionFile, timestamp }: Manifest): string {
  return `${transactionFile} ${timestamp?.seconds}.${timestamp?.nanos}`;
}

type Operation = Transaction["operation"];

/** Operations that keep the rows of a table: at most they move them to other files. */
export const KEEPING: ReadonlySet<Operation["case"]> = new Set([
  "createIndex",
  "reserveFragments",
  "rewrite",
  "updateConfig",
]);

/** Maximum number of versions that are read to find out what happened between two. */
export const MAX_STEPS = 1_000n;

/** A version, and the operation that made it. */
interface Step {
  readonly manifest: Manifest;
  readonly operation: Operation;
}

/** Reads how a version came about; returns undefined if it has been pruned, or its writer recorded nothing. */
export async function readStep(dataset: DatasetRef, version: bigint): Promise<Step | undefined> {
  const file = await readVersionIfThere(dataset, version);
  const operation = file && (await readTransactionMessage(dataset, file))?.operation;
  return operation && { manifest: file.manifest, operation };
}

/** Whether a version of a table has the rows of an older one; false also if that cannot be known. */
async function keepsRows(dataset: DatasetRef, older: bigint, newer: bigint): Promise<boolean> {
  if (newer - older > MAX_STEPS) return false;
  for (let version = older + 1n; version <= newer; version++) {
    const step = await readStep(dataset, version);
    if (step === undefined) return false;
    if (!KEEPING.has(step.operation.case) && !(await changesOnlyMetadata(dataset, step))) return false;
  }
  return true;
}

/** Whether a change of the schema left all columns as they were. */
async function changesOnlyMetadata(dataset: DatasetRef, { manifest, operation }: Step): Promise<boolean> {
  if (operation.case !== "project") return false;
  const before = await readStep(dataset, manifest.version - 1n);
  return (
    before !== undefined &&
    isDeepStrictEqual(columnFacts(before.manifest.fields), columnFacts(manifest.fields))
  );
}
