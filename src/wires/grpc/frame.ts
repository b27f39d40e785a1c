import { type DescField, type DescMessage, type Message, toBinary } from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { type HttpBody, HttpBodySchema } from "../../gen/google/api/httpbody_pb.ts";
import { LanceError } from "../../namespace/errors.ts";
import { bodyFieldOf } from "../../namespace/operations/method-facts.ts";
import { bytesIn, freeAtOnce } from "../../runtime/byte-memory.ts";
import { findLongField, type LongField } from "./long-field.ts";

const HEAD_BYTES = 5;
/**
 * Memory allocated for a message when only its length is known, and once it has filled that; it grows as bytes arrive. Memory that stays
 * empty costs nothing but the garbage collector, which takes it for used and runs the more often.
 */
const [FIRST_ALLOCATION_BYTES, SECOND_ALLOCATION_BYTES] = [16 * 1024, 1024 * 1024];

/** Length from which a message is cut at its long field, in bytes: shorter ones cost less whole than in pieces. */
const CUT_BYTES = 64 * 1024;

/** Number of bytes in which the long field of a message must begin. Longer messages are read as a whole. */
const MAX_START_BYTES = 256 * 1024;

const NOTHING: Buffer = Buffer.alloc(0);

/** A length-prefixed message, or a part of one that is cut at its long field. */
export interface Frame {
  readonly compressed: boolean;
  readonly data: Uint8Array;
  /** Bytes of the request that it took, including its prefix. */
  readonly bytes: number;
  /** Bytes of the long field that have arrived, which `data` lacks. Default: `data` is the whole message. */
  readonly piece?: Uint8Array;
  /** Whether the piece continues that of the frame before, and `data` is empty. Default: false. */
  readonly continues?: boolean;
}

/** Returns a message with its prefix, in a single buffer. */
export function encodeFrame(data: Uint8Array, compressed: boolean): Buffer {
  const frame = Buffer.allocUnsafe(HEAD_BYTES + data.length);
  frame[0] = compressed ? 1 : 0;
  frame.writeUInt32BE(data.length, 1);
  frame.set(data, HEAD_BYTES);
  return frame;
}

/** Returns a message in pieces with its prefix, in pieces. */
export function encodeFramePieces(pieces: readonly Uint8Array[], compressed: boolean): readonly Uint8Array[] {
  const head = Buffer.alloc(HEAD_BYTES);
  head[0] = compressed ? 1 : 0;
  head.writeUInt32BE(bytesIn(pieces), 1);
  return [head, ...pieces];
}

/** Returns the error for a message over the limit. */
export function tooLarge(maxBytes: number): LanceError {
  return new LanceError("PayloadTooLarge", `a message may have at most ${maxBytes} bytes`);
}

/**
 * Takes the pieces of a body, cut anywhere, and returns its messages.
 *
 * After each {@link push}, call {@link next} until it returns nothing more. A message in a single piece is not
 * copied. A message in several pieces is copied into a single buffer as they arrive, so that a peer's tiny pieces
 * cost no more than their bytes. A message with a long field comes in pieces as they arrive, none of which is copied.
 */
export class FrameReader {
  readonly #maxBytes: number;
  readonly #longField: LongField | undefined;
  #rest = NOTHING;
  #body: Buffer | undefined;
  #filled = 0;
  #length = 0;
  #compressed = false;
  /** Bytes of a message that has been cut, which have not arrived. */
  #missing = 0;
  /** Bytes of a message with which its long field is looked for again. */
  #lookAt = 0;

  /** @param longField where long messages are cut. Default: each message is read as a whole. */
  constructor(maxBytes: number, longField?: LongField) {
    this.#maxBytes = maxBytes;
    this.#longField = longField;
  }

  push(piece: Buffer): void {
    this.#rest = this.#rest.length === 0 ? piece : Buffer.concat([this.#rest, piece]);
  }

  /**
   * Returns the next complete message, if there is one.
   *
   * @throws LanceError PayloadTooLarge, for a declared length over the limit; Internal, for an unknown flag.
   */
  next(): Frame | undefined {
    if (this.#missing > 0) return this.#pass();
    if (this.#body !== undefined) return this.#fill(this.#body);
    const rest = this.#rest;
    if (rest.length < HEAD_BYTES) return undefined;
    const flag = rest[0] as number;
    if (flag > 1) throw new LanceError("Internal", `a message has the unknown flag ${flag}`);
    const length = rest.readUInt32BE(1);
    if (length > this.#maxBytes) throw tooLarge(this.#maxBytes);
    const end = HEAD_BYTES + length;
    if (rest.length >= end) {
      this.#rest = rest.length === end ? NOTHING : rest.subarray(end);
      return { compressed: flag === 1, data: rest.subarray(HEAD_BYTES, end), bytes: end };
    }
    this.#rest = rest.subarray(HEAD_BYTES);
    this.#compressed = flag === 1;
    this.#length = length;
    this.#lookAt = 0;
    const cut = this.#cut(this.#rest);
    if (cut !== undefined) return cut;
    this.#filled = 0;
    this.#body = Buffer.allocUnsafeSlow(Math.min(length, FIRST_ALLOCATION_BYTES));
    return this.#fill(this.#body);
  }

  /** Whether a message has started and not ended. */
  get partial(): boolean {
    return this.#missing > 0 || this.#body !== undefined || this.#rest.length > 0;
  }

  /** Cuts a message at its long field, if the field has begun; otherwise looks again when twice as many bytes have arrived. */
  #cut(start: Buffer): Frame | undefined {
    const isCut = this.#longField !== undefined && this.#length >= CUT_BYTES && !this.#compressed;
    if (!isCut || start.length < this.#lookAt || this.#lookAt > MAX_START_BYTES) return undefined;
    const found = findLongField(start, this.#length, this.#longField);
    this.#lookAt = 2 * Math.max(start.length, FIRST_ALLOCATION_BYTES / 4);
    if (found === undefined) return undefined;
    this.#missing = this.#length - start.length;
    [this.#body, this.#rest] = [undefined, NOTHING];
    const piece = start.subarray(found.at);
    return { compressed: false, data: found.head, piece, bytes: HEAD_BYTES + start.length };
  }

  #pass(): Frame | undefined {
    if (this.#rest.length === 0) return undefined;
    const piece = this.#rest.subarray(0, this.#missing);
    this.#rest = this.#rest.subarray(piece.length);
    this.#missing -= piece.length;
    return { compressed: false, data: NOTHING, piece, continues: true, bytes: piece.length };
  }

  #fill(body: Buffer): Frame | undefined {
    const taken = Math.min(this.#rest.length, this.#length - this.#filled);
    const filled = this.#filled + taken;
    const target = filled > body.length ? grow(body, this.#filled, filled, this.#length) : body;
    this.#rest.copy(target, this.#filled, 0, taken);
    this.#rest = this.#rest.subarray(taken);
    this.#filled = filled;
    this.#body = target;
    if (filled < this.#length) return this.#cut(target.subarray(0, filled));
    this.#body = undefined;
    return { compressed: this.#compressed, data: target, bytes: HEAD_BYTES + this.#length };
  }
}

function grow(body: Buffer, filled: number, needed: number, length: number): Buffer {
  const wanted = Math.max(needed, body.length * 2, SECOND_ALLOCATION_BYTES);
  const larger = Buffer.allocUnsafeSlow(Math.min(length, wanted));
  body.copy(larger, 0, 0, filled);
  freeAtOnce(body);
  return larger;
}

const PIECES: unique symbol = Symbol("pieces");

/** A message of a response that is already written, with its prefix; it has none of its fields. */
interface FramedMessage extends Message {
  readonly [PIECES]: readonly Uint8Array[];
}

/**
 * Returns the message of a stream that is the given pieces of a frame. It serves messages that are too large to be copied once more; several of
 * these in a row may be a single frame.
 */
export function framedMessage({ typeName }: DescMessage, pieces: readonly Uint8Array[]): Message {
  const message: FramedMessage = { $typeName: typeName, [PIECES]: pieces };
  return message;
}

/** Size from which bytes are sent from the memory in which they are: to copy fewer costs less than to wait until they are sent. */
export const LENT_BYTES = 64 * 1024;

/** Number of the field of a body that has its bytes. */
const DATA = HttpBodySchema.field.data.number;

/**
 * Encodes a message of a stream as a frame, in pieces. It copies neither the pieces of a message that {@link framedMessage} has made nor a
 * long body.
 */
export function encodeMessage(output: DescMessage, message: Message): readonly Uint8Array[] {
  const made = (message as Partial<FramedMessage>)[PIECES];
  if (made !== undefined) return made;
  const field = output.field[bodyFieldOf(output) ?? ""];
  const body = field && (message as Message & Record<string, HttpBody | undefined>)[field.localName];
  if (field !== undefined && body !== undefined && body.data.byteLength >= LENT_BYTES)
    return encodeFramePieces([beforeData(output, message, field, body), body.data], false);
  return [encodeFrame(toBinary(output, message), false)];
}

/** Encodes everything but the bytes of the body. Fields may have any order, so these come last. */
function beforeData(output: DescMessage, message: Message, field: DescField, body: HttpBody): Uint8Array {
  const others = toBinary(output, { ...message, [field.localName]: undefined });
  const about = toBinary(HttpBodySchema, { ...body, data: NOTHING });
  const { byteLength } = body.data;
  const dataHead = new BinaryWriter().tag(DATA, WireType.LengthDelimited).uint32(byteLength).finish();
  return new BinaryWriter()
    .raw(others)
    .tag(field.number, WireType.LengthDelimited)
    .uint32(about.byteLength + dataHead.byteLength + byteLength)
    .raw(about)
    .raw(dataHead)
    .finish();
}
