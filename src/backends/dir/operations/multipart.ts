import { createHash, randomBytes } from "node:crypto";
import { createReadStream } from "node:fs";
import { mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { joinIpcStreams } from "../../../arrow/join-streams.ts";
import type { Call } from "../../../namespace/call.ts";
import { LanceError } from "../../../namespace/errors.ts";
import type { DirContext } from "./context.ts";
import { type InsertOutcome, insertRows } from "./insert.ts";
import { type FoundTable, isMain } from "./lookup.ts";
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
const PART = ".arrows";

/** Creates the writes of a catalog. They are on the disk, so that any process of the same root can go on with them. */
export function createMultipartWrites(context: DirContext): MultipartWrites {
  const { base } = context.layout;
  const directoryOf = (id: string) => join(base, `${PREFIX}${id}`);

  /** The directory of a write, once it is known to be one of this table. */
  async function find({ id, table, branch }: Write): Promise<string> {
    const directory = directoryOf(id);
    const target = ID.test(id) ? await readFile(join(directory, TARGET), "utf8").catch(() => "") : "";
    if (target !== targetOf(table, branch)) throw unknown(id);
    return directory;
  }

  return {
    async begin(table, branch) {
      await sweepStaging(base);
      const id = randomBytes(16).toString("hex");
      await mkdir(directoryOf(id));
      await writeFile(join(directoryOf(id), TARGET), targetOf(table, branch));
      return id;
    },
    async stage({ write, name, overwrite }, data, call) {
      const directory = await find(write);
      const path = join(directory, createHash("sha256").update(name).digest("hex"));
      const arriving = `${path}.${randomBytes(4).toString("hex")}`;
      try {
        await writeFile(arriving, released(data, call), { signal: call.signal });
        if (overwrite) await writeFile(join(directory, OVERWRITE), "");
        await rename(arriving, `${path}${PART}`);
      } catch (error) {
        await rm(arriving, { force: true });
        // The write has been completed or aborted meanwhile.
        if ((error as NodeJS.ErrnoException).code === "ENOENT") throw unknown(write.id);
        throw error;
      }
    },
    async complete(write, call) {
      const directory = await find(write);
      const taken = `${directory}-taken`;
      // Of two who complete a write, one finds it.
      await rename(directory, taken).catch(() => {
        throw unknown(write.id);
      });
      try {
        const names = await readdir(taken);
        const parts = names.filter((name) => name.endsWith(PART)).sort();
        if (parts.length === 0) throw new LanceError("InvalidInput", "the write has no parts");
        const data = joinIpcStreams(parts.map((part) => () => createReadStream(join(taken, part))));
        const { table, branch } = write;
        const overwrite = names.includes(OVERWRITE);
        const outcome = await insertRows(context, { table, branch, overwrite }, data, {
          ...call,
          ownsBody: false,
        });
        await rm(taken, { recursive: true, force: true });
        return outcome;
      } catch (error) {
        // What went wrong first is what the client has to know.
        await rename(taken, directory).catch(() => {});
        throw error;
      }
    },
    async abort(write) {
      await rm(await find(write), { recursive: true, force: true });
    },
  };
}

function targetOf({ location }: FoundTable, branch: string | undefined): string {
  return JSON.stringify({ location, branch: isMain(branch) ? null : branch });
}

/** The bytes of a body; those that are on the disk count no longer as held. */
async function* released(data: AsyncIterable<Uint8Array>, call: Call): AsyncIterable<Uint8Array> {
  for await (const chunk of data) {
    yield chunk;
    call.releaseBody(chunk.byteLength);
  }
}

function unknown(id: string): LanceError {
  return new LanceError("TransactionNotFound", `the table has no multipart write ${JSON.stringify(id)}`);
}
