import { createHash, randomBytes } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { joinIpcStreams } from "../../../../arrow/ipc/join-streams.ts";
import { InsertIntoTableResponseSchema, InsertMode } from "../../../../gen/lance/namespace/v1/data_pb.ts";
import { type Call, copyCall } from "../../../../namespace/call/call.ts";
import { LanceError, toLanceError } from "../../../../namespace/errors.ts";
import type { LanceNamespace } from "../../../../namespace/lance-namespace.ts";
import type { DataContext } from "../../data/data-context.ts";
import type { FoundTable } from "../../data/table-source.ts";
import { decisiveRequest, deleteIfSame } from "../../format/decisive-request.ts";
import { keyIn, listNames } from "../../format/storage.ts";
import { newStagingId } from "../../format/table-files.ts";
import type { UploadContext } from "../context.ts";
import { requireTable } from "../tables/find-table.ts";
import { isMain, requireOpenTable } from "../tables/open-data.ts";
import { type InsertOutcome, insertRows } from "./insert.ts";

/** Writes whose parts arrive one by one, are kept as files, and become one version on completion. */
export interface MultipartWrites {
  /** Begins a write. @returns its id */
  begin(table: FoundTable, branch: string | undefined): Promise<string>;
  /**
   * Keeps a part, which replaces an earlier part of its name.
   *
   * @throws LanceError TransactionNotFound
   */
  stage(part: Part, data: AsyncIterable<Uint8Array>, call: Call): Promise<void>;
  /**
   * Writes all parts as one version and removes them. When that certainly fails, the parts stay for another attempt.
   *
   * @throws LanceError TransactionNotFound; the errors of an insert
   */
  complete(write: Write, call: Call): Promise<InsertOutcome>;
  /** Removes a write and its parts. @throws LanceError TransactionNotFound */
  abort(write: Write): Promise<void>;
}

/** A write of a table. */
export interface Write {
  readonly id: string;
  readonly table: FoundTable;
  readonly branch: string | undefined;
}

/** A part of a write. */
export interface Part {
  readonly write: Write;
  /** The name that the client chose. */
  readonly name: string;
  readonly overwrite: boolean;
}

/** Prefix of directories below the base. An abandoned write is swept away with other staged data. */
const PREFIX = ".staging-upload-";
const ID = /^[0-9a-f]{32}$/;
const TARGET = "target";
const OVERWRITE = "overwrite";
/** The name of a file that exists while a process completes or aborts the write. */
const TAKEN = "taken";
const PART = ".arrows";

/** Creates the writes of a catalog. They are in its storage, so that any process on the same root can continue them. */
export function createMultipartWrites(context: DataContext & UploadContext): MultipartWrites {
  const { tables, store, log } = context;
  const directoryOf = (id: string, table: FoundTable) => keyIn(tables.stagingBaseOf(table), `${PREFIX}${id}`);

  /** Returns the directory of a write after a check that it belongs to this table and that no process ends it. */
  async function find({ id, table, branch }: Write): Promise<string> {
    const directory = directoryOf(id, table);
    const [target, taken] = ID.test(id)
      ? await Promise.all([store.get(`${directory}/${TARGET}`), store.head(`${directory}/${TAKEN}`)])
      : [];
    if (target === undefined || taken !== undefined) throw unknown(id);
    if (Buffer.from(target).toString() !== targetOf(table, branch)) throw unknown(id);
    return directory;
  }
  /** Takes a write, by a mark of random bytes; of several calls that complete or abort it, only one gets true. */
  const take = (directory: string, mark = randomBytes(16)) =>
    store.putIfAbsent(`${directory}/${TAKEN}`, mark);
  /** Yields the bytes of an object, which is read only on demand. */
  async function* bytesOf(key: string): AsyncIterable<Uint8Array> {
    const bytes = await store.getStream(key);
    if (bytes === undefined) throw new Error(`${key} is gone`);
    yield* bytes;
  }

  /** Removes the parts of a write that has ended; a later sweep removes what is left. */
  async function clear(directory: string): Promise<void> {
    await store.deleteDirectory(directory, { last: TAKEN }).catch((error: unknown) => {
      log.warn({ err: error }, "the parts of a write are left behind");
    });
  }

  return {
    async begin(table, branch) {
      const id = newStagingId();
      const target = Buffer.from(targetOf(table, branch));
      await decisiveRequest(store, () => store.put(`${directoryOf(id, table)}/${TARGET}`, target));
      return id;
    },
    async stage({ write, name, overwrite }, data, call) {
      const directory = await find(write);
      const key = `${directory}/${createHash("sha256").update(name).digest("hex")}${PART}`;
      if (overwrite) await store.put(`${directory}/${OVERWRITE}`, Buffer.from(""));
      await store.putStream(key, released(data, call), call.signal);
      // A part must not be acknowledged when another call has completed or aborted the write meanwhile.
      await find(write).catch(async (error: unknown) => {
        await store.delete(key);
        throw error;
      });
    },
    async complete(write, call) {
      const directory = await find(write);
      // The parts that exist by then are those of the write.
      const mark = randomBytes(16);
      if (!(await take(directory, mark))) throw unknown(write.id);
      let outcome: InsertOutcome;
      try {
        const names = await listNames(store, directory);
        const parts = names.filter((name) => name.endsWith(PART)).sort();
        if (parts.length === 0) throw new LanceError("InvalidInput", "the write has no parts");
        const data = held(joinIpcStreams(parts.map((part) => () => bytesOf(`${directory}/${part}`))), call);
        const { table, branch } = write;
        const overwrite = names.includes(OVERWRITE);
        outcome = await insertRows(
          context,
          { table, branch, overwrite },
          data,
          copyCall(call, { ownsBody: false }),
        );
      } catch (error) {
        // The table may have the rows: a second completion would add them twice.
        const isUnclear = ["OutcomeUnknown", "Internal"].includes(toLanceError(error).kind);
        if (!isUnclear) await deleteIfSame(store, `${directory}/${TAKEN}`, mark).catch(() => {});
        throw error;
      }
      await clear(directory);
      return outcome;
    },
    async abort(write) {
      const directory = await find(write);
      if (!(await decisiveRequest(store, () => take(directory)))) throw unknown(write.id);
      await clear(directory);
    },
  };
}

function targetOf({ location }: FoundTable, branch: string | undefined): string {
  return JSON.stringify({ location, branch: isMain(branch) ? null : branch });
}

/** Yields bytes after it has taken memory for them. */
async function* held(data: AsyncIterable<Uint8Array>, call: Call): AsyncIterable<Uint8Array> {
  for await (const chunk of data) {
    call.holdBody(chunk.byteLength);
    yield chunk;
  }
}

/** Yields the bytes of a body; bytes that the storage has no longer count as held. */
async function* released(data: AsyncIterable<Uint8Array>, call: Call): AsyncIterable<Uint8Array> {
  for await (const chunk of data) {
    yield chunk;
    call.releaseBody(chunk.byteLength);
  }
}

function unknown(id: string): LanceError {
  return new LanceError("TransactionNotFound", `the table has no multipart write ${JSON.stringify(id)}`);
}

/** The operation that adds rows to a table, or replaces them. */
export function createInsertOperations(
  context: DataContext & UploadContext,
  writes: Pick<MultipartWrites, "stage">,
): Pick<LanceNamespace, "insertIntoTable"> {
  return {
    async insertIntoTable({ branch, mode, uploadId, uploadPartId }, data, call) {
      const overwrite = mode === InsertMode.OVERWRITE;
      if (uploadId === undefined && isMain(branch) && !overwrite) {
        const { table, lease: opened } = await requireOpenTable(context, call);
        try {
          const target = { table, branch, overwrite, opened };
          const { rows, version } = await insertRows(context, target, data, call);
          return create(InsertIntoTableResponseSchema, { numInsertedRows: rows, version });
        } finally {
          opened?.release();
        }
      }
      const table = await requireTable(context, call);
      if (uploadId !== undefined) {
        const write = { id: uploadId, table, branch };
        await writes.stage({ write, name: uploadPartId ?? "", overwrite }, data, call);
        return create(InsertIntoTableResponseSchema);
      }
      const { rows, version } = await insertRows(context, { table, branch, overwrite }, data, call);
      return create(InsertIntoTableResponseSchema, { numInsertedRows: rows, version });
    },
  };
}
