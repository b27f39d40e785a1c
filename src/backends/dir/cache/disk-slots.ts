import { constants, type FileHandle, lstat, mkdir, open, stat } from "node:fs/promises";
import { join } from "node:path";
import { createPace } from "../../../runtime/pace.ts";
import {
  blockContext,
  decodeRecord,
  encodeRecord,
  RECORD_BYTES,
  type Seal,
  type SlotRecord,
} from "./record.ts";

/** Blocks on a disk, each in a slot of the same size; all failures are those of node:fs. */
export interface DiskSlots {
  /** Number of slots. */
  readonly count: number;
  /** Reads the records of all slots that have one. */
  load(each: (slot: number, record: SlotRecord) => void): Promise<void>;
  /** Writes a block, and then its record. */
  write(slot: number, block: Omit<SlotRecord, "seal">, bytes: Buffer): Promise<Buffer>;
  /** Removes the record of a slot, so that a later start does not find it. */
  erase(slot: number): Promise<void>;
  /** Reads a block; undefined if its bytes are not those that were written. */
  read(slot: number, record: SlotRecord, length: number): Promise<Buffer | undefined>;
  close(): Promise<void>;
}

/** Options of {@link openDiskSlots}. */
export interface DiskSlotsOptions {
  readonly directory: string;
  /** Size of all files together, in bytes. */
  readonly maxBytes: number;
  readonly blockBytes: number;
  readonly seal: Seal;
}

/** First bytes of the file of records: what must be the same for its records to be of use. */
const HEADER_BYTES = 4_096;

/** Number of records that are read at a time. */
const LOADED_AT_A_TIME = 1_024;

/**
 * Opens the files of a cache, `lance-gateway.blocks` and `lance-gateway.records`, and creates them if they do not exist or are of another kind. They are as long as the
 * slots in use, and never longer than the bound.
 *
 * Nothing is synced: a block counts only if its bytes, its record and their checksums fit, whatever a crash has left.
 *
 * @throws Error with a single line, if others may change the directory or a file is a link
 */
export async function openDiskSlots(options: DiskSlotsOptions): Promise<DiskSlots> {
  const { directory, maxBytes, blockBytes, seal } = options;
  const count = Math.max(0, Math.floor((maxBytes - HEADER_BYTES) / (blockBytes + RECORD_BYTES)));
  await openCacheDirectory(directory);
  const blocks = await openFile(join(directory, "lance-gateway.blocks"));
  const records = await openFile(join(directory, "lance-gateway.records")).catch(async (error: unknown) => {
    await blocks.close();
    throw error;
  });
  const recordAt = (slot: number) => HEADER_BYTES + slot * RECORD_BYTES;
  try {
    const header = Buffer.alloc(HEADER_BYTES);
    header.write(`lance-gateway cache 1\nblock ${blockBytes}\nseal ${seal.name}\n`);
    const found = Buffer.alloc(HEADER_BYTES);
    await records.read(found, 0, HEADER_BYTES, 0);
    if (!found.equals(header)) {
      await records.truncate(0);
      await blocks.truncate(0);
      await records.write(header, 0, HEADER_BYTES, 0);
    }
    // The bound may be smaller than before.
    if ((await records.stat()).size > recordAt(count)) await records.truncate(recordAt(count));
    if ((await blocks.stat()).size > count * blockBytes) await blocks.truncate(count * blockBytes);
  } catch (error) {
    await Promise.all([blocks.close(), records.close()]);
    throw error;
  }
  return {
    count,
    async load(each) {
      const chunk = Buffer.alloc(LOADED_AT_A_TIME * RECORD_BYTES);
      const pace = createPace();
      for (let first = 0; first < count; first += LOADED_AT_A_TIME) {
        const { bytesRead } = await records.read(chunk, 0, chunk.length, recordAt(first));
        const slots = Math.min(count - first, Math.floor(bytesRead / RECORD_BYTES));
        for (let at = 0; at < slots; at += 1) {
          const bytes = chunk.subarray(at * RECORD_BYTES, (at + 1) * RECORD_BYTES);
          const record = decodeRecord(seal, first + at, bytes);
          if (record !== undefined) each(first + at, record);
        }
        if (slots < LOADED_AT_A_TIME) return;
        await pace.pauseIfDue();
      }
    },
    async write(slot, { object, index }, bytes) {
      const { closed, seal: own } = seal.close(bytes, blockContext(object, index));
      await writeWhole(blocks, closed, slot * blockBytes);
      await writeWhole(records, encodeRecord(seal, slot, { object, index, seal: own }), recordAt(slot));
      return own;
    },
    erase: (slot) => writeWhole(records, Buffer.alloc(RECORD_BYTES), recordAt(slot)),
    async read(slot, { object, index, seal: own }, length) {
      const bytes = Buffer.allocUnsafe(length);
      const { bytesRead } = await blocks.read(bytes, 0, length, slot * blockBytes);
      if (bytesRead < length) return undefined;
      return seal.open(bytes, own, blockContext(object, index));
    },
    async close() {
      await Promise.all([blocks.close(), records.close()]);
    },
  };
}

/** Opens a file that only its owner may read, or creates it. It does not follow a link, by which another file would be emptied. */
async function openFile(path: string): Promise<FileHandle> {
  const { O_RDWR, O_CREAT, O_NOFOLLOW = 0 } = constants;
  const file = await open(path, O_RDWR | O_CREAT | O_NOFOLLOW, 0o600).catch(
    (error: NodeJS.ErrnoException) => {
      throw error.code === "ELOOP" ? new Error(`${path} is a link`, { cause: error }) : error;
    },
  );
  await file.chmod(0o600);
  return file;
}

async function writeWhole(file: FileHandle, bytes: Buffer, position: number): Promise<void> {
  let done = 0;
  while (done < bytes.length) {
    const { bytesWritten } = await file.write(bytes, done, bytes.length - done, position + done);
    done += bytesWritten;
  }
}

/** Bits of a mode that let others than the owner change a directory. */
const WRITABLE_BY_OTHERS = 0o022;

/**
 * Creates the directory of a cache, or finds it, and makes sure that nobody else can put files or links into it.
 *
 * @throws Error with a single line
 */
export async function openCacheDirectory(directory: string): Promise<void> {
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const own = process.getuid?.();
  // A system without users has no such modes either.
  if (own === undefined) return;
  const { uid, mode } = await stat(directory);
  if (uid !== own) throw new Error(`${directory} belongs to another user than that of the gateway`);
  if ((mode & WRITABLE_BY_OTHERS) !== 0)
    throw new Error(
      `${directory} is writable for others than its owner; name a directory in it, or chmod 0700`,
    );
  const { uid: linker } = await lstat(directory);
  if (linker !== own && linker !== 0) throw new Error(`${directory} is a link of another user`);
}
