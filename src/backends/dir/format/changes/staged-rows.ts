import { randomUUID } from "node:crypto";
import { create, toBinary } from "@bufbuild/protobuf";
import { type DataFragment, type Manifest, ManifestSchema } from "../../../../gen/lance/format/table_pb.ts";
import {
  type Transaction,
  Transaction_AppendSchema,
  Transaction_DeleteSchema,
  Transaction_OverwriteSchema,
  Transaction_Update_UpdateMode,
  Transaction_UpdateSchema,
  TransactionSchema,
} from "../../../../gen/lance/format/transaction_pb.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import { type DatasetRef, manifestKey } from "../dataset.ts";
import {
  copyMessage,
  FLAG_DELETION_FILES,
  FLAG_NO_TRANSACTION_FILES,
  FLAG_TABLE_CONFIG,
  FLAG_V2_FORMAT,
  largestFragmentId,
} from "../files/manifest.ts";
import { buildManifestFile, type ManifestFile } from "../files/manifest-file.ts";
import { readTransactionMessage } from "../versions/transaction-records.ts";
import { readVersion } from "../versions/version-files.ts";
import { writeVersionHint } from "../versions/version-hint.ts";
import { afterChange } from "./after-change.ts";
import { type ApplyChange, commitChange } from "./commit.ts";

/*
 * The gateway stages rows that are too many for a single commit of the engine: the engine writes them, in several
 * commits, to a separate dataset that is like the table without its rows. Then the data files move to the table, and a
 * single commit adds all of them. Data files have unique names and do not contain their location, so a file is valid in
 * either dataset, as long as both agree on fields, their ids and the data format.
 */

const COMMON_FLAGS = FLAG_DELETION_FILES | FLAG_V2_FORMAT | FLAG_TABLE_CONFIG | FLAG_NO_TRANSACTION_FILES;

/**
 * Whether staged rows can be added to a table: it has none of the features that tie a fragment to its table, such as
 * stable row ids, other base paths or overlays.
 */
export function takesStagedRows({
  readerFeatureFlags,
  writerFeatureFlags,
  $unknown = [],
}: Manifest): boolean {
  return ((readerFeatureFlags | writerFeatureFlags) & ~COMMON_FLAGS) === 0n && $unknown.length === 0;
}

/** Writes the first version of a staging dataset: a version of the table without rows and indices. */
export async function putStagingBase(staging: DatasetRef, base: ManifestFile): Promise<void> {
  const manifest = copyMessage(base.manifest);
  manifest.fragments = [];
  manifest.maxFragmentId = undefined;
  manifest.indexSection = undefined;
  manifest.branch = undefined;
  manifest.transactionFile = "";
  manifest.versionAuxData = 0n;
  manifest.transactionSectionDeprecated = undefined;
  manifest.transactionSection = 0n;
  const transaction = create(TransactionSchema, {
    readVersion: manifest.version,
    uuid: randomUUID(),
    operation: { case: "append", value: create(Transaction_AppendSchema) },
  });
  const bytes = buildManifestFile(
    new Uint8Array(),
    toBinary(TransactionSchema, transaction),
    manifest,
    base.signature,
  );
  await staging.store.put(manifestKey(staging, manifest.version, "V2"), bytes);
  await writeVersionHint(staging, manifest.version);
}

/**
 * Adds staged rows to a table after any changes of others, as long as its schema is unchanged.
 *
 * @param base the version that the staging dataset was created from
 * @throws LanceError ConcurrentModification
 */
export function appendRows(base: Manifest, staged: Manifest): ApplyChange {
  return (manifest) => {
    if (!takesStagedRows(manifest) || !sameStorage(base, manifest)) {
      throw new LanceError("ConcurrentModification", "the table's schema changed while rows were added");
    }
    manifest.fragments.push(...numbered(manifest, staged.fragments));
    const fragments = unnumbered(staged.fragments);
    return { operation: { case: "append", value: create(Transaction_AppendSchema, { fragments }) } };
  };
}

/** Commits a version without new rows, and returns its number. @throws LanceError the errors of {@link commitChange} */
export async function appendNothing(dataset: DatasetRef): Promise<number> {
  const operation = { case: "append", value: create(Transaction_AppendSchema) } as const;
  return Number((await commitChange(dataset, () => ({ operation }))).version);
}

/**
 * Replaces all rows of a table, and its schema, by the staged ones; settings and table metadata remain.
 *
 * @throws LanceError ConcurrentModification
 */
export function replaceRows(staged: Manifest): ApplyChange {
  return (manifest) => {
    if (!takesStagedRows(manifest)) {
      throw new LanceError("ConcurrentModification", "the table's features changed while rows were added");
    }
    const { fields, schemaMetadata, dataFormat, writerVersion } = copyMessage(staged);
    Object.assign(manifest, { fields, schemaMetadata, dataFormat, writerVersion });
    manifest.fragments = numbered(manifest, staged.fragments);
    const kept = FLAG_TABLE_CONFIG | FLAG_NO_TRANSACTION_FILES;
    manifest.readerFeatureFlags = staged.readerFeatureFlags;
    manifest.writerFeatureFlags = (staged.writerFeatureFlags & ~kept) | (manifest.writerFeatureFlags & kept);
    const fragments = unnumbered(staged.fragments);
    const value = create(Transaction_OverwriteSchema, { fragments, schema: fields, schemaMetadata });
    return { operation: { case: "overwrite", value }, dropsIndices: true };
  };
}

/** Gives fragments the next ids of a table. */
function numbered(manifest: Manifest, fragments: readonly DataFragment[]): DataFragment[] {
  const first = nextFragmentId(manifest);
  const result = fragments.map((fragment, i) => withId(fragment, first + BigInt(i)));
  if (result.length > 0) manifest.maxFragmentId = Number(first) + result.length - 1;
  return result;
}

/** Removes the ids, which fragments in a transaction do not have yet. */
function unnumbered(fragments: readonly DataFragment[]): DataFragment[] {
  return fragments.map((fragment) => withId(fragment, 0n));
}

function withId(fragment: DataFragment, id: bigint): DataFragment {
  return Object.assign(copyMessage(fragment), { id });
}

/** Whether files of a version can be read with another: both have equal fields under equal ids. */
function sameStorage(a: Manifest, b: Manifest): boolean {
  const [one, other] = [a, b].map(({ fields, dataFormat }) =>
    toBinary(ManifestSchema, create(ManifestSchema, { fields, ...(dataFormat && { dataFormat }) })),
  );
  return Buffer.compare(one as Uint8Array, other as Uint8Array) === 0;
}

/** A change of rows, by fragments. */
export interface RowsChange {
  /** Fragments to remove. */
  readonly removed: ReadonlySet<bigint>;
  /** Fragments that lose rows, in their new form. */
  readonly updated: readonly DataFragment[];
  /** A new fragment; the change assigns its id. */
  readonly added: DataFragment | undefined;
}

/** A manifest with a change in it, which shares unchanged parts with the previous one. */
interface ChangedRows {
  readonly manifest: Manifest;
  readonly operation: Transaction["operation"];
  /** Id of the added fragment. */
  readonly addedId: bigint;
}

/**
 * Applies a change of rows to a manifest.
 *
 * It records an `Update`, even if rows are only added or only removed. Writers of the engine that insert by a key treat
 * every `Update` without a filter of keys as a conflict and decide again on the new version, whereas they follow an
 * `Append` or a `Delete` without deciding again.
 */
export function changeRows(before: Manifest, { removed, updated, added }: RowsChange): ChangedRows {
  const byId = new Map(updated.map((fragment) => [fragment.id, fragment]));
  const fragments = before.fragments
    .filter(({ id }) => !removed.has(id))
    .map((fragment) => byId.get(fragment.id) ?? fragment);
  const addedId = nextFragmentId(before);
  if (added !== undefined) fragments.push({ ...added, id: addedId });
  const maxFragmentId = added === undefined ? largestFragmentId(before) : addedId;
  const deletes = fragments.some(({ deletionFile }) => deletionFile !== undefined);
  const manifest: Manifest = {
    ...before,
    fragments,
    readerFeatureFlags: withDeletions(before.readerFeatureFlags, deletes),
    writerFeatureFlags: withDeletions(before.writerFeatureFlags, deletes),
    ...(maxFragmentId !== undefined && { maxFragmentId: Number(maxFragmentId) }),
  };
  const value = create(Transaction_UpdateSchema, {
    removedFragmentIds: [...removed],
    updatedFragments: [...updated],
    newFragments: added === undefined ? [] : [Object.assign(copyMessage(added), { id: 0n })],
    updateMode: Transaction_Update_UpdateMode.REWRITE_ROWS,
  });
  return { manifest, operation: { case: "update", value }, addedId };
}

/** Returns the id of the next new fragment. */
function nextFragmentId(manifest: Manifest): bigint {
  return (largestFragmentId(manifest) ?? -1n) + 1n;
}

/** Returns feature flags that say whether some fragments have deleted rows. */
export function withDeletions(flags: bigint, deletes: boolean): bigint {
  return deletes ? flags | FLAG_DELETION_FILES : flags & ~FLAG_DELETION_FILES;
}

/**
 * Checks the rows that the engine has appended while others committed, and takes them back if a column has got another type
 * meanwhile. The engine appends rows without looking at that: a column with another type is a new field in the format, of
 * which the rows have no values, so all of them would be null.
 *
 * @param version the version that the engine made
 * @throws LanceError ConcurrentModification, and nothing is added; OutcomeUnknown, if the rows cannot be taken back
 */
export async function checkAppended(dataset: DatasetRef, version: bigint): Promise<void> {
  await afterChange(async () => {
    const file = await readVersion(dataset, version);
    const operation = (await readTransactionMessage(dataset, file))?.operation;
    if (operation?.case !== "append" || !lacksValues(file.manifest, operation.value.fragments)) return;
    await takeBack(dataset, operation.value.fragments);
    throw new LanceError(
      "ConcurrentModification",
      "a column has got another type meanwhile, and no rows were added; try again",
    );
  }, "ConcurrentModification");
}

/** Whether a fragment has values of fields that are gone, and none of others. */
export function lacksValues({ fields }: Manifest, fragments: readonly DataFragment[]): boolean {
  const known = new Set(fields.map(({ id }) => id));
  const parents = new Set(fields.map(({ parentId }) => parentId));
  const leaves = fields.filter(({ id }) => !parents.has(id));
  // Another fragment, of a writer that read a later version, may have what one lacks.
  return fragments.some(({ files }) => {
    const written = new Set(files.flatMap((each) => each.fields));
    const isGone = [...written].some((id) => id >= 0 && !known.has(id));
    return isGone && leaves.some(({ id }) => !written.has(id));
  });
}

/** Removes appended fragments in a commit of its own. */
async function takeBack(dataset: DatasetRef, appended: readonly DataFragment[]): Promise<void> {
  const paths = new Set(appended.flatMap(({ files }) => files.map(({ path }) => path)));
  await commitChange(dataset, (manifest) => {
    const isAppended = ({ files }: DataFragment) => files.some(({ path }) => paths.has(path));
    const doomed = manifest.fragments.filter(isAppended);
    if (doomed.length < appended.length) throw new Error("the appended rows are in other files by now");
    manifest.fragments = manifest.fragments.filter((fragment) => !isAppended(fragment));
    const value = create(Transaction_DeleteSchema, { deletedFragmentIds: doomed.map(({ id }) => id) });
    return { operation: { case: "delete", value } };
  });
}
