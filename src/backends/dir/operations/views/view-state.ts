import type { Manifest } from "../../../../gen/lance/format/table_pb.ts";
import type { DatasetRef } from "../../format/dataset.ts";
import { keepsRows } from "./kept-rows.ts";

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
  /** Identity of that version ({@link versionIdentity}); older gateways recorded none. */
  readonly sourceIdentity?: string | undefined;
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

function isState({ source, sourceVersion, rowsVersion, query }: ViewState): boolean {
  const versions = [sourceVersion, rowsVersion];
  return (
    versions.every((version) => typeof version === "string" && /^[1-9]\d{0,18}$/.test(version)) &&
    typeof source === "string" &&
    typeof query === "string"
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
  return sourceIdentity === undefined || sourceIdentity === versionIdentity(version);
}

/**
 * Distinguishes a version from others of its number, which a table has that was created again or restored from a backup.
 */
export function versionIdentity({ transactionFile, timestamp }: Manifest): string {
  return `${transactionFile} ${timestamp?.seconds}.${timestamp?.nanos}`;
}
