import type { Data, Vector } from "apache-arrow";
import { formatFieldPath } from "../../../../arrow/field-path.ts";
import type { DataFragment } from "../../../../gen/lance/format/table_pb.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import type { NativeMerge, NativeTable } from "../../engine/native/native.ts";
import { MAX_BATCH_ROWS } from "../../engine/row-widths.ts";
import { afterChange } from "../../format/changes/after-change.ts";
import type { DatasetRef } from "../../format/dataset.ts";
import type { ManifestFile } from "../../format/files/manifest-file.ts";
import { readTransactionMessage } from "../../format/versions/transaction-records.ts";
import { readVersion } from "../../format/versions/version-files.ts";

/** Changes whose new fragments have no new rows. */
const WITHOUT_NEW_ROWS: ReadonlySet<string | undefined> = new Set(["rewrite", "delete", "createIndex"]);

/** Number of addresses in one condition. */
const MAX_ADDRESSES = 10_000;

/** Maximum number of times that a merge is repeated. */
const REPEATS = 5;

/** A table into which rows are merged. */
export interface MergedTable {
  readonly dataset: DatasetRef;
  readonly table: Pick<NativeTable, "query" | "delete" | "version" | "checkoutCurrent">;
  /** Columns of the key. */
  readonly on: readonly string[];
}

/** The result of the engine's merge. */
type Merged = Awaited<ReturnType<NativeMerge["execute"]>>;

/**
 * Runs a merge that inserts, and sees to it that it doubles no key which another program has inserted since the merge began.
 *
 * The engine commits a merge on top of the rows that others have added meanwhile, and looks at their keys only if the key is the table's primary
 * key. Rows with doubled keys are therefore deleted again, and the merge is repeated, as if it had begun after the other program's commit. For that
 * moment readers see both rows. Merged again, the other rows stay as they are.
 *
 * @param merge runs the merge on the version of the table's handle, which is then at the version that it has made
 * @throws LanceError OutcomeUnknown, if that fails once the merge is committed; the errors of `merge`
 */
export async function mergeWithoutDoubling(
  merged: MergedTable,
  merge: () => Promise<Merged>,
): Promise<Merged> {
  let before = await merged.table.version();
  let result = await merge();
  const inserted = new Set<string>();
  for (let repeats = 0; ; repeats++) {
    const { version } = result;
    const doubled = await afterChange(() => deleteDoubled(merged, { before, version, inserted }));
    if (doubled === 0) return result;
    if (repeats === REPEATS) throw new LanceError("OutcomeUnknown", CROWDED);
    before = await merged.table.version();
    result = joined(result, doubled, await afterChange(merge));
  }
}

const CROWDED =
  "other programs go on inserting the same keys, and some rows of the merge are missing; repeat it, or declare the table's primary key";

/** Returns what a merge and its repetition have changed together. */
function joined(first: Merged, doubled: number, second: Merged): Merged {
  const numInsertedRows = first.numInsertedRows - doubled + second.numInsertedRows;
  const numUpdatedRows = first.numUpdatedRows + Math.min(doubled, second.numUpdatedRows);
  return {
    ...second,
    numInsertedRows,
    numUpdatedRows,
    numDeletedRows: first.numDeletedRows + second.numDeletedRows,
    numAttempts: first.numAttempts + second.numAttempts,
    numRows: numInsertedRows + numUpdatedRows,
  };
}

/**
 * Deletes the rows that a merge has inserted and whose keys others have inserted between two versions.
 *
 * @param inserted the keys that the merge has inserted before it was repeated; gets those of this time
 * @returns the number of deleted rows
 */
async function deleteDoubled(
  { dataset, table, on }: MergedTable,
  { before, version, inserted }: { before: number; version: number; inserted: Set<string> },
): Promise<number> {
  if (version <= before + 1) return 0;
  const { ours, theirs, shrunk } = await newFragments(dataset, before, version);
  if (ours.length === 0 || theirs.length === 0) return 0;
  const sizeOf = (some: readonly CountedFragment[]) => some.reduce((sum, { rows }) => sum + rows, 0n);
  const [few, many] = sizeOf(theirs) < sizeOf(ours) ? [theirs, ours] : [ours, theirs];
  const known = new Set<string>();
  for await (const { key } of keysIn(table, on, few)) known.add(key);
  const doubled = new Set<string>();
  for await (const { key } of keysIn(table, on, many)) if (known.has(key)) doubled.add(key);
  if (doubled.size === 0) return 0;
  const updated = new Set(shrunk.length === 0 ? [] : await keysAt(table, version - 1, on, shrunk));
  const addresses: bigint[] = [];
  for await (const { key, address } of keysIn(table, on, ours)) {
    // A row that was there before the merge stays beside the other.
    if (updated.has(key) && !inserted.has(key)) continue;
    inserted.add(key);
    if (doubled.has(key)) addresses.push(address);
  }
  for (let at = 0; at < addresses.length; at += MAX_ADDRESSES)
    await table.delete(`_rowaddr IN (${addresses.slice(at, at + MAX_ADDRESSES).join(",")})`);
  return addresses.length;
}

interface CountedFragment {
  readonly id: bigint;
  readonly rows: bigint;
}

/** Returns the fragments with the rows of a merge, those that other writers have added before it, and others from which it has taken rows. */
async function newFragments(dataset: DatasetRef, before: number, version: number) {
  const theirs: CountedFragment[] = [];
  let previous = await readVersion(dataset, BigInt(before));
  for (let number = before + 1; number < version; number++) {
    const next = await readVersion(dataset, BigInt(number));
    const transaction = await readTransactionMessage(dataset, next);
    if (!WITHOUT_NEW_ROWS.has(transaction?.operation.case)) theirs.push(...added(previous, next));
    previous = next;
  }
  const merged = await readVersion(dataset, BigInt(version));
  const others = new Set(theirs.map(({ id }) => id));
  const shrunk = taken(previous, merged).filter(({ id }) => !others.has(id));
  return { theirs, ours: added(previous, merged), shrunk };
}

function taken(previous: ManifestFile, next: ManifestFile): CountedFragment[] {
  const rowsOf = ({ physicalRows, deletionFile }: DataFragment) =>
    physicalRows - (deletionFile?.numDeletedRows ?? 0n);
  const left = new Map(next.manifest.fragments.map((fragment) => [fragment.id, rowsOf(fragment)]));
  return previous.manifest.fragments
    .map((fragment) => ({ id: fragment.id, rows: rowsOf(fragment) }))
    .filter(({ id, rows }) => left.get(id) !== rows);
}

function added(previous: ManifestFile, next: ManifestFile): CountedFragment[] {
  const known = new Set(previous.manifest.fragments.map(({ id }) => id));
  return next.manifest.fragments
    .filter(({ id }) => !known.has(id))
    .map(({ id, physicalRows }) => ({ id, rows: physicalRows }));
}

/** Returns the keys of some fragments at a version. */
async function keysAt(
  table: Pick<NativeTable, "checkoutCurrent">,
  version: number,
  on: readonly string[],
  fragments: readonly CountedFragment[],
): Promise<readonly string[]> {
  const own = await table.checkoutCurrent();
  try {
    await own.checkout(version);
    return await Array.fromAsync(keysIn(own, on, fragments), ({ key }) => key);
  } finally {
    own.close();
  }
}

/** Yields the keys of the rows of some fragments. A row with a null in its key matches no other. */
async function* keysIn(
  table: Pick<NativeTable, "query">,
  on: readonly string[],
  fragments: readonly CountedFragment[],
): AsyncGenerator<{ key: string; address: bigint }> {
  const { tableFromIPC } = await import("apache-arrow");
  for (const { id } of fragments) {
    const query = table.query();
    query.onlyIf(`_rowaddr >= ${id << 32n} AND _rowaddr < ${(id + 1n) << 32n}`);
    query.select([
      ...on.map((name, i): Column => [`key${i}`, formatFieldPath([name])]),
      ["address", "_rowaddr"],
    ]);
    query.useLsm(false);
    const batches = await query.execute(MAX_BATCH_ROWS);
    for (let file = await batches.next(); file !== null; file = await batches.next()) {
      const { batches: parts } = tableFromIPC(file);
      for (const part of parts) {
        const columns = part.schema.fields.map((_, i) => part.getChildAt(i) as Vector);
        const addresses = columns.pop() as Vector;
        for (let row = 0; row < part.numRows; row++) {
          const key = keyOf(columns, row);
          if (key !== undefined) yield { key, address: addresses.get(row) as bigint };
        }
      }
    }
  }
}

/** A column of a query, by name and expression. */
type Column = [name: string, expression: string];

function keyOf(columns: readonly Vector[], row: number): string | undefined {
  const parts: string[] = [];
  for (const column of columns) {
    if (!column.isValid(row)) return undefined;
    parts.push(textOf(column, row));
  }
  return JSON.stringify(parts);
}

/** Returns a value as text, exactly: Arrow's library rounds times and decimals, so those are taken as they are stored. */
function textOf(column: Vector, row: number): string {
  const value: unknown = column.get(row);
  if (value instanceof Uint8Array) return Buffer.from(value).toString("base64");
  const { values, stride, dictionary } = column.data[0] as Data;
  const isStored = typeof value === "number" || typeof value === "object";
  if (!isStored || values === undefined || dictionary !== undefined) return String(value);
  return values.subarray(row * stride, (row + 1) * stride).join();
}
