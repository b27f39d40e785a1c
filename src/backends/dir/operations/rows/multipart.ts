import { createHash, randomBytes } from "node:crypto";
import { joinIpcStreams } from "../../../../arrow/join-streams.ts";
import type { Call } from "../../../../namespace/call.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import type { ChangeContext } from "../../batch/change-context.ts";
import { UnsyncedError } from "../../format/local-errors.ts";
import { newStagingId } from "../../format/staging-key.ts";
import { keyIn, listNames } from "../../format/storage.ts";
import type { DirContext, UploadContext } from "../context.ts";
import { type FoundTable, isMain } from "../tables/lookup.ts";
import { type InsertOutcome, insertRows } from "./insert.ts";
import { sweepStaging } from "./staged-write.ts";

/** Writes whose parts arrive one by one, are kept as files, and become one version when all are there. */
export interface MultipartWrites {
  /** Begins a write. @returns its id */
  begin(table: FoundTable, branch: string | undefined): Promise<string>;
  /**
   * Keeps a part; one of the same name is replaced.
   *
   * @throws LanceError TransactionNotFound
   */
  stage(part: Part, data: AsyncIterable<Uint8Array>, call: Call): Promise<void>;
  /**
   * Writes all parts as one version and forgets them; when that fails they stay, for another try.
   *
   * @throws LanceError TransactionNotFound; those of an insert.
   */
  complete(write: Write, call: Call): Promise<InsertOutcome>;
  /** Forgets a write. @throws LanceError TransactionNotFound */
  abort(write: Write): Promise<void>;
}

/** A write of a table. */
export interface Write {
  readonly id: string;
  readonly table: FoundTable;
  readonly branch: string | undefined;
}

/** One part of a write. */
export interface Part {
  readonly write: Write;
  /** The name of the client's choice. */
  readonly name: string;
  readonly overwrite: boolean;
}

/** Below the base; a write that nobody goes on with is swept away with other staged data. */
const PREFIX = ".staging-upload-";
const ID = /^[0-9a-f]{32}$/;
const TARGET = "target";
const OVERWRITE = "overwrite";
/** There while somebody completes the write. */
const TAKEN = "taken";
const PART = ".arrows";

/** Creates the writes of a catalog. They are in its storage, so that any process of the same root can go on with them. */
export function createMultipartWrites(
  context: ChangeContext & UploadContext & Pick<DirContext, "clock">,
): MultipartWrites {
  const { layout, store, log } = context;
  const directoryOf = (id: string) => keyIn(layout.baseKey, `${PREFIX}${id}`);

  /** The directory of a write, once it is known to be one of this table that nobody completes. */
  async function find({ id, table, branch }: Write): Promise<string> {
    const directory = directoryOf(id);
    const [target, taken] = ID.test(id)
      ? await Promise.all([store.get(`${directory}/${TARGET}`), store.head(`${directory}/${TAKEN}`)])
      : [];
    if (target === undefined || taken !== undefined) throw unknown(id);
    if (Buffer.from(target).toString() !== targetOf(table, branch)) throw unknown(id);
    return directory;
  }
  /** The bytes of an object, which is asked for when they are. */
  async function* bytesOf(key: string): AsyncIterable<Uint8Array> {
    const bytes = await store.getStream(key);
    if (bytes === undefined) throw new Error(`${key} is gone`);
    yield* bytes;
  }

  return {
    async begin(table, branch) {
      await sweepStaging(context);
      const id = newStagingId();
      await store.put(`${directoryOf(id)}/${TARGET}`, Buffer.from(targetOf(table, branch)));
      return id;
    },
    async stage({ write, name, overwrite }, data, call) {
      const directory = await find(write);
      const key = `${directory}/${createHash("sha256").update(name).digest("hex")}${PART}`;
      if (overwrite) await store.put(`${directory}/${OVERWRITE}`, Buffer.from(""));
      await store.putStream(key, released(data, call), call.signal);
      // A part that came too late for who has completed or aborted the write meanwhile must not be acknowledged.
      await find(write).catch(async (error: unknown) => {
        await store.delete(key);
        throw error;
      });
    },
    async complete(write, call) {
      const directory = await find(write);
      const mark = `${directory}/${TAKEN}`;
      // Of two who complete a write, one has the mark. The parts that are there by then are those of the write.
      if (!(await store.putIfAbsent(mark, randomBytes(16)))) throw unknown(write.id);
      let outcome: InsertOutcome;
      try {
        const names = await listNames(store, directory);
        const parts = names.filter((name) => name.endsWith(PART)).sort();
        if (parts.length === 0) throw new LanceError("InvalidInput", "the write has no parts");
        const data = joinIpcStreams(parts.map((part) => () => bytesOf(`${directory}/${part}`)));
        const { table, branch } = write;
        const overwrite = names.includes(OVERWRITE);
        outcome = await insertRows(context, { table, branch, overwrite }, data, { ...call, ownsBody: false });
      } catch (error) {
        // Readers see rows whose sync failed: completing the write again would add them twice.
        if (!(error instanceof UnsyncedError)) await store.delete(mark).catch(() => {});
        throw error;
      }
      // The rows are in the table: what is left behind here is swept away another time.
      await store.deleteDirectory(directory, TAKEN).catch((error: unknown) => {
        log.warn({ err: error }, "the parts of a completed write are left behind");
      });
      return outcome;
    },
    async abort(write) {
      const directory = await find(write);
      await store.delete(`${directory}/${TARGET}`);
      await store.deleteDirectory(directory);
    },
  };
}

function targetOf({ location }: FoundTable, branch: string | undefined): string {
  return JSON.stringify({ location, branch: isMain(branch) ? null : branch });
}

/** The bytes of a body; those that are in the storage count no longer as held. */
async function* released(data: AsyncIterable<Uint8Array>, call: Call): AsyncIterable<Uint8Array> {
  for await (const chunk of data) {
    yield chunk;
    call.releaseBody(chunk.byteLength);
  }
}

function unknown(id: string): LanceError {
  return new LanceError("TransactionNotFound", `the table has no multipart write ${JSON.stringify(id)}`);
}
