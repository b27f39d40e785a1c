import { isDeepStrictEqual } from "node:util";
import type { Manifest } from "../../../../gen/lance/format/table_pb.ts";
import type { Transaction } from "../../../../gen/lance/format/transaction_pb.ts";
import type { DatasetRef } from "../../format/dataset.ts";
import { columnFacts } from "../../format/files/manifest.ts";
import { readTransactionMessage } from "../../format/versions/transaction-records.ts";
import { readVersionIfThere } from "../../format/versions/version-files.ts";

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
export interface Step {
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
export async function keepsRows(dataset: DatasetRef, older: bigint, newer: bigint): Promise<boolean> {
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
