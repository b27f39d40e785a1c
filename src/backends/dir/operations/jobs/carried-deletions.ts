import { randomUUID } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import { toBinary } from "@bufbuild/protobuf";
import type { DataFragment, Manifest } from "../../../../gen/lance/format/table_pb.ts";
import {
  type Transaction,
  type Transaction_Rewrite_RewriteGroup,
  TransactionSchema,
} from "../../../../gen/lance/format/transaction_pb.ts";
import type { DriverRewrite } from "../../../../gen/lance/gateway/v1/driver_pb.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import { ITEMS_PER_STEP, inSlices, type Steps } from "../../../../runtime/pace.ts";
import { withDeletions } from "../../format/changes/staged-rows.ts";
import { type DatasetRef, transactionKey } from "../../format/dataset.ts";
import {
  deletionKey,
  encodeDeletions,
  newDeletionFile,
  readDeletedRows,
} from "../../format/files/deletion-file.ts";
import { coverOf, readSegments, segmentId } from "../../format/files/index-section.ts";
import { copyMessage, copySteps } from "../../format/files/manifest.ts";
import {
  type ManifestFile,
  manifestFileOf,
  manifestFileSteps,
  readInheritedPart,
} from "../../format/files/manifest-file.ts";
import { readVersionIfThere } from "../../format/versions/version-files.ts";

/** A rewrite that was staged on the version before it, and what it has rewritten. */
export interface StagedRewrite {
  readonly before: ManifestFile;
  readonly next: ManifestFile;
  readonly transaction: Transaction;
  readonly rewrite: Pick<DriverRewrite, "readVersion" | "groups">;
}

/** A staged version in which the rows are deleted that others have deleted since the rewritten fragments were read. */
export interface CarriedRewrite {
  readonly file: ManifestFile;
  readonly transaction: Transaction;
  /** Writes the version as a staged manifest, with its files; returns its size in bytes. */
  write(): Promise<number>;
  /** Deletes what {@link write} has written, after the version was refused. */
  discard(): Promise<void>;
}

/**
 * Deletes the rows of rewritten fragments that others have deleted, or moved by an update, while workers rewrote them.
 *
 * New fragments have the rows of the former ones that were not deleted when they were read, in the same order. So the position of a row
 * follows from what was deleted then. A rewrite need not begin again for each update.
 *
 * @returns undefined if there are no such rows
 * @throws LanceError InvalidInput if others have changed the fragments in another way, or have built indices on them, and for a rewrite
 *   that does not have the rows of its fragments
 */
export async function carryDeletions(
  dataset: DatasetRef,
  { before, next, transaction, rewrite }: StagedRewrite,
): Promise<CarriedRewrite | undefined> {
  const { operation } = transaction;
  if (operation.case !== "rewrite" || operation.value.groups.length !== rewrite.groups.length)
    throw new LanceError(
      "InvalidInput",
      "the version does not rewrite the groups of fragments that the driver names",
    );
  const read = await readVersionIfThere(dataset, rewrite.readVersion);
  if (read === undefined)
    throw changed(`the version ${rewrite.readVersion}, which the workers have read, is gone`);
  const [was, now] = [read, before].map(({ manifest }) => fragmentsOf(manifest)) as [Fragments, Fragments];
  await checkIndices(read, before, new Set(rewrite.groups.flatMap(({ fragmentIds }) => fragmentIds)));
  const lost = new Map<bigint, Uint32Array>();
  for (const [at, group] of operation.value.groups.entries()) {
    const ids = rewrite.groups[at]?.fragmentIds ?? [];
    const rows = await lostRows(dataset, { ids, group, was, now });
    for (const [id, offsets] of spread(rows, group)) lost.set(id, offsets);
  }
  return lost.size === 0 ? undefined : deleteRows(dataset, before.manifest.version, next, transaction, lost);
}

type Fragments = ReadonlyMap<bigint, DataFragment>;

function fragmentsOf({ fragments }: Manifest): Fragments {
  return new Map(fragments.map((fragment) => [fragment.id, fragment]));
}

/** Returns the error for a rewrite that no later version can take either: pylance repeats a commit after other errors. */
function changed(text: string): LanceError {
  return new LanceError("InvalidInput", `${text}, so the rewrite has to begin again`);
}

/**
 * An index that was built meanwhile would lose the fragments: the workers have noted no addresses for it. An index that does not say
 * which fragments it covers may cover them.
 */
async function checkIndices(
  read: ManifestFile,
  before: ManifestFile,
  ids: ReadonlySet<bigint>,
): Promise<void> {
  const known = new Set((await readSegments(read)).map(segmentId));
  for (const segment of await readSegments(before)) {
    if (known.has(segmentId(segment)) || segment.fields.length === 0) continue;
    const covers = segment.fragmentBitmap.byteLength === 0 ? () => true : coverOf(segment);
    if ([...ids].some((id) => covers(Number(id))))
      throw changed(
        `the index ${JSON.stringify(segment.name)} was built meanwhile on the rewritten fragments`,
      );
  }
}

interface RewrittenGroup {
  readonly ids: readonly bigint[];
  readonly group: Transaction_Rewrite_RewriteGroup;
  readonly was: Fragments;
  readonly now: Fragments;
}

/** Returns the rows that a group has lost since it was read, as positions among those that it had then. */
async function lostRows(dataset: DatasetRef, { ids, group, was, now }: RewrittenGroup): Promise<number[]> {
  const present = ids.filter((id) => now.has(id));
  if (
    !isDeepStrictEqual(
      present,
      group.oldFragments.map(({ id }) => id),
    )
  )
    throw changed("some of the rewritten fragments are gone, or were not named");
  // A table that was made again may have versions and fragments of the same numbers.
  if (group.oldFragments.some((old) => !isDeepStrictEqual(filesOf(old), filesOf(was.get(old.id)))))
    throw new LanceError(
      "InvalidInput",
      "the workers have not read the fragments of the version that is named",
    );
  const lost: number[] = [];
  let rows = 0;
  for (const id of ids) {
    const [then, current] = [was.get(id), now.get(id)];
    if (then === undefined)
      throw new LanceError("InvalidInput", `the version that was read has no fragment ${id}`);
    if (current !== undefined && !isDeepStrictEqual(contentOf(then), contentOf(current)))
      throw changed(`others have changed columns of the fragment ${id} meanwhile`);
    if (current !== undefined && isDeepStrictEqual(then.deletionFile, current.deletionFile)) {
      rows += Number(then.physicalRows - (then.deletionFile?.numDeletedRows ?? 0n));
      continue;
    }
    // The lists of a shallow clone's rows are in the directory of another table.
    if ([then, current].some((fragment) => (fragment?.deletionFile?.$unknown ?? []).length > 0))
      throw changed(`others have deleted rows of the fragment ${id}, which is shared with another table`);
    const deletedThen = await readDeletedRows(dataset, then);
    const deleted = current && (await readDeletedRows(dataset, current));
    rows += await inSlices(noteLost(id, deletedThen, deleted, (row) => lost.push(rows + row)));
  }
  const written = group.newFragments.reduce((sum, { physicalRows }) => sum + Number(physicalRows), 0);
  if (written !== rows || group.newFragments.some(({ deletionFile }) => deletionFile !== undefined))
    throw new LanceError(
      "InvalidInput",
      `the new fragments have ${written} rows, and the former ones had ${rows}`,
    );
  return lost;
}

/** Notes the rows of a fragment that are deleted now and were not then, counted without those; returns how many there were. */
function* noteLost(
  id: bigint,
  then: Uint8Array,
  now: Uint8Array | undefined,
  note: (row: number) => void,
): Steps<number> {
  let rows = 0;
  for (let offset = 0; offset < then.length; offset++) {
    if (offset % ITEMS_PER_STEP === 0) yield;
    const isDeleted = now === undefined || now[offset] === 1;
    if (then[offset] === 1) {
      if (!isDeleted) throw changed(`others have restored rows of the fragment ${id}`);
      continue;
    }
    if (isDeleted) note(rows);
    rows += 1;
  }
  return rows;
}

/** Returns everything about a fragment but which of its rows are deleted. */
function contentOf({ deletionFile: _, ...content }: DataFragment): object {
  return content;
}

/** Returns the names of a fragment's files, which no other fragment has. */
function filesOf(fragment: DataFragment | undefined): readonly unknown[] | undefined {
  const { files, deletionFile } = fragment ?? {};
  return files && [...files.map(({ path }) => path), deletionFile?.readVersion, deletionFile?.id];
}

/** Yields the new fragments of a group that lose rows, with the offsets of these. */
function* spread(
  lost: readonly number[],
  { newFragments }: Transaction_Rewrite_RewriteGroup,
): Generator<[bigint, Uint32Array]> {
  let [first, at] = [0, 0];
  for (const { id, physicalRows } of newFragments) {
    const [from, end] = [at, first + Number(physicalRows)];
    while (at < lost.length && (lost[at] as number) < end) at += 1;
    const start = first;
    if (at > from) yield [id, Uint32Array.from(lost.slice(from, at), (row) => row - start)];
    first = end;
  }
}

/** Returns a staged version without some rows of its fragments. */
async function deleteRows(
  dataset: DatasetRef,
  version: bigint,
  next: ManifestFile,
  transaction: Transaction,
  lost: ReadonlyMap<bigint, Uint32Array>,
): Promise<CarriedRewrite> {
  const { store } = dataset;
  const thinned = new Map<bigint, DataFragment>();
  const thin = (fragments: readonly DataFragment[]): DataFragment[] =>
    fragments.flatMap((fragment) => {
      const offsets = lost.get(fragment.id);
      if (offsets === undefined) return [fragment];
      // A fragment without rows is none.
      if (offsets.length === Number(fragment.physicalRows)) return [];
      const deletionFile = thinned.get(fragment.id)?.deletionFile ?? newDeletionFile(version, offsets.length);
      const own = Object.assign(copyMessage(fragment), { deletionFile });
      thinned.set(fragment.id, own);
      return [own];
    });
  const inherited = await readInheritedPart(next);
  const manifest = await inSlices(copySteps(next.manifest));
  manifest.fragments = thin(manifest.fragments);
  const deletes = manifest.fragments.some(({ deletionFile }) => deletionFile !== undefined);
  manifest.readerFeatureFlags = withDeletions(manifest.readerFeatureFlags, deletes);
  manifest.writerFeatureFlags = withDeletions(manifest.writerFeatureFlags, deletes);
  manifest.transactionSection = BigInt(inherited.byteLength);
  delete manifest.transactionSectionDeprecated;
  // Calls that are repeated at the same time must not write to the same files, nor to those that the driver names.
  const attempt = randomUUID();
  if (manifest.transactionFile !== "")
    manifest.transactionFile = `${transaction.readVersion}-${attempt}-${checkUuid(transaction.uuid)}.txn`;
  const own = copyMessage(transaction);
  if (own.operation.case === "rewrite")
    for (const group of own.operation.value.groups) group.newFragments = thin(group.newFragments);
  const record = toBinary(TransactionSchema, own);
  const bytes = await inSlices(manifestFileSteps(inherited, record, manifest, next.signature));
  const file = manifestFileOf(`${next.key}-${attempt}`, bytes, manifest);
  const keyOf = (fragment: DataFragment) => deletionKey(dataset, fragment) as string;
  // Older engines read it instead of the record in the manifest.
  const records = manifest.transactionFile === "" ? [] : [transactionKey(dataset, manifest.transactionFile)];
  return {
    file,
    transaction: own,
    async write() {
      for (const [id, fragment] of thinned)
        await store.create(keyOf(fragment), encodeDeletions(lost.get(id) as Uint32Array));
      for (const key of records) await store.create(key, record);
      await store.put(file.key, bytes);
      return bytes.byteLength;
    },
    async discard() {
      for (const key of [file.key, ...records, ...[...thinned.values()].map(keyOf)])
        await store.delete(key).catch(() => {});
    },
  };
}

/** Returns a transaction's id, which becomes a part of a file's name. @throws LanceError InvalidInput */
function checkUuid(uuid: string): string {
  if (/^[\da-f-]{36}$/i.test(uuid)) return uuid;
  throw new LanceError("InvalidInput", "the id of the version's transaction is not a UUID");
}
