import type { ArrowSchema } from "../../../../arrow/schema.ts";
import { checkCompatible, unfoldsDictionary } from "../../../../arrow/upload/compatible.ts";
import { readUpload, type UploadPart } from "../../../../arrow/upload/upload.ts";
import type { Call } from "../../../../namespace/call/call.ts";
import { isLanceError, LanceError } from "../../../../namespace/errors.ts";
import type { DataContext } from "../../data/data-context.ts";
import type { FoundTable } from "../../data/table-source.ts";
import { engineCall } from "../../engine/failures/errors.ts";
import type { Lease } from "../../engine/handles.ts";
import type { NativeTable } from "../../engine/native/native.ts";
import { afterChange } from "../../format/changes/after-change.ts";
import { appendNothing, checkAppended, takesStagedRows } from "../../format/changes/staged-rows.ts";
import type { DatasetRef } from "../../format/dataset.ts";
import type { ManifestFile } from "../../format/files/manifest-file.ts";
import { syncVersion } from "../../format/versions/make-durable.ts";
import type { PreparedVersion } from "../../format/versions/publish-version.ts";
import { readVersion } from "../../format/versions/version-files.ts";
import { withBlobColumns } from "../blobs/legacy-blobs.ts";
import { checkName } from "../columns/column-name.ts";
import type { UploadContext } from "../context.ts";
import { versionWork } from "../tables/long-work.ts";
import { datasetOf, isMain, withData } from "../tables/open-data.ts";
import { type DropWatch, watchForDrop } from "../tables/watch-for-drop.ts";
import { checkBlobs, checkStorable, checkTypes } from "./check-types.ts";
import { createShared } from "./first-version.ts";
import {
  type AlsoChange,
  droppedMeanwhile,
  type StagedRows,
  withStagedFile,
  withStagedRows,
} from "./staged-write.ts";
import { writeByDisk } from "./write-by-disk.ts";

/** The rows of an upload, from which a table can be made. */
export interface ReceivedRows {
  readonly rows: number;
  readonly schema: ArrowSchema;
  /** Whether the rows can be written again after {@link ReceivedRows.stage}. */
  readonly isRepeatable: boolean;
  /** Writes a new dataset to a location to which no other process writes. */
  stage(path: string): Promise<number>;
  /** Writes the first version of a table, unless another writer is first. @throws LanceError TableAlreadyExists */
  create(table: FoundTable): Promise<number>;
  /** Writes a version that replaces all rows. @throws LanceError ConcurrentModification, also if the table is dropped meanwhile */
  replace(table: FoundTable): Promise<number>;
  /** Writes such a version, or a first one, together with the changes of `work`; see {@link StagedRows.asNext}. */
  asNext(table: FoundTable, work: (version: PreparedVersion) => Promise<number>): Promise<number>;
  /**
   * Appends the rows; an empty body makes a version, too.
   *
   * @param opened the table's data, if the caller has opened it
   * @param watch a watch of the table that began before it was opened. Default: one that begins now
   * @throws LanceError TableSchemaValidationError
   */
  append(table: FoundTable, opened?: Lease, watch?: DropWatch): Promise<number>;
  /** Appends at least one row together with another change, to a table that takes staged rows; see {@link StagedRows.append}. */
  appendWith(table: FoundTable, also: AlsoChange): Promise<number>;
  /** Replaces all rows together with another change, as {@link ReceivedRows.appendWith}. */
  replaceWith(table: FoundTable, also: AlsoChange): Promise<number>;
}

/** A storage, and the table in it that gets rows; undefined if the table does not exist yet. */
export interface Place {
  readonly storage: DataContext;
  /** The table as it was before the body was read. */
  readonly table: FoundTable | undefined;
}

/** The purpose of an upload. */
export interface Purpose {
  /** The place of the rows. A function makes that of a new table, once its first rows have proved sound. */
  readonly place: Place | (() => Promise<Place>);
  readonly branch?: string | undefined;
  /** Whether the rows bring their own schema. */
  readonly overwrite: boolean;
}

/**
 * Receives an upload. An upload that fits into a part is written at once. A longer one is staged part by part where the
 * table allows it; otherwise it is held in memory as a whole.
 *
 * @throws LanceError TableSchemaValidationError, and InvalidInput for names of columns, before anything is written; the errors of
 *   {@link readUpload} and of the engine
 */
export async function receiveRows<T>(
  uploads: UploadContext,
  data: AsyncIterable<Uint8Array>,
  call: Pick<Call, "signal" | "ownsBody" | "holdBody" | "releaseBody">,
  { place, branch, overwrite }: Purpose,
  work: (rows: ReceivedRows) => Promise<T>,
): Promise<T> {
  const { maxUploadBytes: maxBytes, uploadPartBytes: partBytes, uploadBuffers: pool } = uploads;
  const known = typeof place === "function" ? undefined : place;
  let base: ManifestFile | undefined;
  const mayCut = async () => {
    base = known?.table && (await newestVersion(known.storage, known.table, branch));
    return base === undefined || takesStagedRows(base.manifest);
  };
  const { signal, ownsBody: ownsChunks = false, holdBody: hold } = call;
  const parts = readUpload(data, { maxBytes, partBytes, mayCut, ownsChunks, pool, signal, hold });
  try {
    const { value: received } = await parts.next();
    if (received === undefined) throw new Error("an upload has at least one part");
    let first = overwrite ? await withBlobColumns(received, hold) : received;
    checkBlobs(first.schema.fields);
    checkTypes(first.schema.fields);
    if (overwrite) {
      checkStorable(first.schema.fields);
      for (const { name } of first.schema.fields) checkName(name);
    }
    const { storage: context, table } = typeof place === "function" ? await place() : place;
    if (first.last) return await work(wholeRows(context, first, branch, hold));
    // A dictionary may have ended the part before the part had its full size.
    if (base === undefined && !(await mayCut())) {
      throw new LanceError(
        "Unsupported",
        "a dictionary changes within the body; this table accepts only one",
      );
    }
    const unfolds =
      table !== undefined &&
      base !== undefined &&
      !overwrite &&
      (await checkSchema(context, table, branch, first));
    const isNew = overwrite || base === undefined;
    const rest = isNew ? withBlobs(parts, hold) : unfolds ? unfolded(parts, hold) : parts;
    if (isNew) first = await withBlobColumns(first, hold);
    if (unfolds) hold(first.textBytes);
    const options = { base, overwrite, onWritten: call.releaseBody };
    return await withStagedRows(context, table, first, rest, options, (staged) =>
      work(stagedRows(context, staged, first.schema, branch)),
    );
  } finally {
    // A part that is on its way needs no wait: the wire ends the body.
    parts.return().catch(() => {});
  }
}

/** Whether rows can become the next version of a table through {@link ReceivedRows.asNext}. */
export async function takesNext(context: DataContext, table: FoundTable): Promise<boolean> {
  const newest = await newestVersion(context, table, undefined);
  return newest === undefined || takesStagedRows(newest.manifest);
}

/** Returns the newest version of a table or branch; undefined when it has none. */
async function newestVersion(
  context: DataContext,
  table: FoundTable,
  branch: string | undefined,
): Promise<ManifestFile | undefined> {
  try {
    return await readVersion(datasetOf(context, table, branch));
  } catch (error) {
    if (isLanceError(error, "TableVersionNotFound")) return undefined;
    throw error;
  }
}

function wholeRows(
  context: DataContext,
  part: UploadPart,
  branch: string | undefined,
  hold: (bytes: number) => void,
): ReceivedRows {
  const { engine, store } = context;
  const { file, rows, schema } = part;
  async function staged(
    table: FoundTable,
    overwrite: boolean,
    work: (staged: StagedRows, dataset: DatasetRef) => Promise<number>,
  ): Promise<number> {
    const dataset = datasetOf(context, table, branch);
    const options = { base: await readVersion(dataset), overwrite, onWritten() {} };
    return withStagedRows(context, table, part, noParts(), options, (all) => work(all, dataset));
  }
  async function durable(table: FoundTable, committed: Promise<number>): Promise<number> {
    const version = await committed;
    await afterChange(() => syncVersion(datasetOf(context, table, branch), BigInt(version)));
    return version;
  }
  return {
    rows,
    schema,
    isRepeatable: true,
    stage: (path) =>
      store.files === undefined ? writeByDisk(context, path, file) : engine.create(path, file, "create"),
    // Rows for a table without data, which they give its schema, come as those of any other insert.
    create: async (table) => createShared(context, table, (await withBlobColumns(part, hold)).file),
    replace(table) {
      const { orDropped, refuseDropped } = watchForDrop(context, table, droppedMeanwhile);
      const replaceOnBranch = () =>
        withData(context, table, { branch, readsNoRows: true }, (native) =>
          engineCall(async () => (await native.add(file, "overwrite")).version),
        );
      const replace = async () => {
        const version = await (isMain(branch)
          ? engine.create(table.path, file, "overwrite")
          : replaceOnBranch());
        const dataset = datasetOf(context, table, branch);
        await afterChange(() => refuseDropped(dataset, version), "ConcurrentModification");
        return version;
      };
      return durable(table, replace().catch(orDropped));
    },
    asNext: (table, work) =>
      withStagedFile(context, table, file, (staged) =>
        staged.asNext(datasetOf(context, table, branch), work),
      ),
    append(table, opened, { orDropped, refuseDropped } = watchForDrop(context, table)) {
      const append = async (native: NativeTable, lease: Lease) => {
        const known = await engineCall(lease.schema);
        checkCompatible(schema, known);
        if (unfoldsDictionary(schema.fields, known.fields)) hold(part.textBytes);
        // The engine cannot append nothing.
        const dataset = datasetOf(context, table, branch);
        if (rows === 0) return appendNothing(dataset);
        const before = await engineCall(lease.version);
        const begun = performance.now();
        const { version } = await versionWork(before, dataset, () =>
          engineCall(() => native.add(file, "append")),
        );
        await afterChange(() => refuseDropped(dataset, version), "TableNotFound");
        lease.noteMade(version, begun, true);
        if (version > before + 1) await checkAppended(dataset, BigInt(version));
        return durable(table, Promise.resolve(version));
      };
      return withData(context, table, { branch }, append, opened).catch(orDropped);
    },
    appendWith: (table, also) => staged(table, false, (all, dataset) => all.append(dataset, also)),
    replaceWith: (table, also) => staged(table, true, (all, dataset) => all.replace(dataset, also)),
  };
}

async function* noParts(): AsyncGenerator<UploadPart, void> {}

function stagedRows(
  context: DataContext,
  staged: StagedRows,
  schema: ArrowSchema,
  branch: string | undefined,
): ReceivedRows {
  const create = ({ path }: Pick<FoundTable, "path">) =>
    staged.create({ store: context.store, root: context.store.keyOf(path) });
  return {
    rows: staged.rows,
    schema,
    // Staging moves the files away.
    isRepeatable: false,
    stage: (path) => create({ path }),
    create,
    replace: (table) => staged.replace(datasetOf(context, table, branch)),
    asNext: (table, work) => staged.asNext(datasetOf(context, table, branch), work),
    append: (table) => staged.append(datasetOf(context, table, branch)),
    appendWith: (table, also) => staged.append(datasetOf(context, table, branch), also),
    replaceWith: (table, also) => staged.replace(datasetOf(context, table, branch), also),
  };
}

/** Yields parts whose legacy blob columns have become blobs. */
async function* withBlobs(
  parts: AsyncGenerator<UploadPart, void>,
  hold: (bytes: number) => void,
): AsyncGenerator<UploadPart, void> {
  for await (const part of parts) yield withBlobColumns(part, hold);
}

/** Yields parts whose dictionaries become texts, once there is memory for them. */
async function* unfolded(
  parts: AsyncGenerator<UploadPart, void>,
  hold: (bytes: number) => void,
): AsyncGenerator<UploadPart, void> {
  for await (const part of parts) {
    hold(part.textBytes);
    yield { ...part, heldBytes: part.heldBytes + part.textBytes };
  }
}

/** Checks that the rows fit the table. Returns whether a dictionary of theirs becomes texts in it. */
function checkSchema(
  context: DataContext,
  table: FoundTable,
  branch: string | undefined,
  { schema }: UploadPart,
): Promise<boolean> {
  return withData(context, table, { branch }, async (_, { schema: current }) => {
    const known = await engineCall(current);
    checkCompatible(schema, known);
    return unfoldsDictionary(schema.fields, known.fields);
  });
}
