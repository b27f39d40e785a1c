import { open, stat, truncate } from "node:fs/promises";
import { join } from "node:path";
import { RECORD_BYTES, SEAL_BYTES } from "../../../src/backends/dir/cache/record.ts";
import type { Random } from "../../support/random.ts";

/** Size of the blocks of the tests. */
export const BLOCK_BYTES = 64;
const HEADER_BYTES = 4_096;

/** Classes of bytes of a record, each with its first byte and its length; see the encoding of records. */
const RECORD_CLASSES: Readonly<Record<string, readonly [from: number, length: number]>> = {
  "seal of the record": [0, SEAL_BYTES],
  name: [SEAL_BYTES, 16],
  index: [SEAL_BYTES + 16, 4],
  size: [SEAL_BYTES + 20, 8],
  modified: [SEAL_BYTES + 28, 8],
  "seal of the block": [SEAL_BYTES + 36, SEAL_BYTES],
  kind: [2 * SEAL_BYTES + 36, 1],
  "length of the tag": [2 * SEAL_BYTES + 37, 1],
  tag: [2 * SEAL_BYTES + 38, 4],
  padding: [2 * SEAL_BYTES + 60, RECORD_BYTES - 2 * SEAL_BYTES - 60],
};

/** Kinds of damage. */
export const DAMAGES: readonly string[] = [
  ...["header", "block", ...Object.keys(RECORD_CLASSES)],
  ...["swapped records", "copied record", "copied block", "truncation", "garbage at the end", "torn record"],
];

/** Damages the files of a cache in a way that is drawn; does nothing to files without slots. */
export async function damageFiles(directory: string, kind: string, random: Random): Promise<void> {
  const [blocks, records] = ["blocks", "records"].map((name) => join(directory, `lance-gateway.${name}`)) as [
    string,
    string,
  ];
  const slots = Math.floor(((await stat(records)).size - HEADER_BYTES) / RECORD_BYTES);
  const recordOf = (slot: number) => HEADER_BYTES + slot * RECORD_BYTES;
  if (kind === "header") return flip(records, random, 0, 100);
  if (slots <= 0) return;
  const [slot, other] = [random.below(slots), random.below(slots)];
  const place = RECORD_CLASSES[kind];
  if (place !== undefined) return flip(records, random, recordOf(slot) + place[0], place[1]);
  switch (kind) {
    case "block":
      return flip(blocks, random, slot * BLOCK_BYTES, BLOCK_BYTES);
    case "swapped records": {
      const [one, two] = await Promise.all([slot, other].map((each) => read(records, recordOf(each))));
      await write(records, two as Buffer, recordOf(slot));
      return write(records, one as Buffer, recordOf(other));
    }
    case "copied record":
      return write(records, await read(records, recordOf(slot)), recordOf(other));
    case "copied block":
      return write(
        blocks,
        (await read(blocks, slot * BLOCK_BYTES)).subarray(0, BLOCK_BYTES),
        other * BLOCK_BYTES,
      );
    case "truncation": {
      const path = random.pick([blocks, records]);
      return truncate(path, random.below((await stat(path)).size + 1));
    }
    case "torn record":
      return write(records, Buffer.alloc(RECORD_BYTES / 2), recordOf(slot) + RECORD_BYTES / 2);
    default: {
      // The next start cuts what is beyond the bound.
      const path = random.pick([blocks, records]);
      return write(path, Buffer.alloc(random.below(4 * RECORD_BYTES), 0xa5), (await stat(path)).size);
    }
  }
}

async function read(path: string, position: number): Promise<Buffer> {
  const file = await open(path, "r");
  const bytes = Buffer.alloc(RECORD_BYTES);
  const { bytesRead } = await file.read(bytes, 0, RECORD_BYTES, position);
  await file.close();
  return bytes.subarray(0, bytesRead);
}

async function write(path: string, bytes: Buffer, position: number): Promise<void> {
  const file = await open(path, "r+");
  await file.write(bytes, 0, bytes.length, position);
  await file.close();
}

/** Changes a bit. */
async function flip(path: string, random: Random, from: number, length: number): Promise<void> {
  const file = await open(path, "r+");
  const byte = Buffer.alloc(1);
  const at = from + random.below(length);
  const { bytesRead } = await file.read(byte, 0, 1, at);
  if (bytesRead === 1) await file.write(Buffer.from([(byte[0] ?? 0) ^ (1 << random.below(8))]), 0, 1, at);
  await file.close();
}
