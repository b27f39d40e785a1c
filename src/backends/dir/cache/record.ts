import type { CacheableKind } from "./cacheable.ts";
import { SEAL_BYTES, type Seal } from "./seal.ts";

/** Facts of an object of a bucket when its blocks were read. */
export interface ObjectFacts {
  /** Name of the object in the cache, as hexadecimal digits. */
  readonly name: string;
  readonly kind: CacheableKind;
  /** Entity tag, as the service wrote it. */
  readonly tag: string;
  /** In bytes. */
  readonly size: number;
  /** In milliseconds since 1970. */
  readonly modified: number;
}

/** A block of an object in a slot of the disk. */
export interface SlotRecord {
  readonly object: ObjectFacts;
  /** Position of the block in the object, from 0. */
  readonly index: number;
  /** Seal of the block's bytes. */
  readonly seal: Buffer;
}

/** Size of a record on the disk, in bytes. */
export const RECORD_BYTES = 256;
const BODY_BYTES = RECORD_BYTES - SEAL_BYTES;

/** Longest entity tag of a record. */
export const MAX_TAG_BYTES = BODY_BYTES - 16 - 4 - 8 - 8 - SEAL_BYTES - 2;

const KINDS: readonly CacheableKind[] = ["index", "deletions", "data", "transaction"];

/** Returns the context of a record: its slot. */
const contextOf = (slot: number) => Buffer.from(`record ${slot}`);

/** Returns the context of a block, which does not open for another object, tag or position. */
export function blockContext({ name, tag, size }: ObjectFacts, index: number): Buffer {
  return Buffer.from(`${name} ${index} ${size} ${tag}`);
}

/** Encodes the record of a slot. */
export function encodeRecord(seal: Seal, slot: number, record: SlotRecord): Buffer {
  const { object, index } = record;
  const body = Buffer.alloc(BODY_BYTES);
  body.write(object.name, 0, 16, "hex");
  body.writeUInt32LE(index, 16);
  body.writeDoubleLE(object.size, 20);
  body.writeDoubleLE(object.modified, 28);
  record.seal.copy(body, 36);
  body.writeUInt8(KINDS.indexOf(object.kind), 36 + SEAL_BYTES);
  body.writeUInt8(body.write(object.tag, 38 + SEAL_BYTES, "latin1"), 37 + SEAL_BYTES);
  const { closed, seal: outer } = seal.close(body, contextOf(slot));
  return Buffer.concat([outer, closed]);
}

/** Decodes the record of a slot; undefined for one that is empty or damaged. */
export function decodeRecord(seal: Seal, slot: number, bytes: Buffer): SlotRecord | undefined {
  const body = seal.open(bytes.subarray(SEAL_BYTES), bytes.subarray(0, SEAL_BYTES), contextOf(slot));
  const kind = body && KINDS[body.readUInt8(36 + SEAL_BYTES)];
  if (body === undefined || kind === undefined) return undefined;
  const length = body.readUInt8(37 + SEAL_BYTES);
  return {
    object: {
      name: body.toString("hex", 0, 16),
      kind,
      tag: body.toString("latin1", 38 + SEAL_BYTES, 38 + SEAL_BYTES + length),
      size: body.readDoubleLE(20),
      modified: body.readDoubleLE(28),
    },
    index: body.readUInt32LE(16),
    seal: Buffer.from(body.subarray(36, 36 + SEAL_BYTES)),
  };
}
