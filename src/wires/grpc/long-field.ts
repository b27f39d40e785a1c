import { create, type DescField, type DescMessage, type Message } from "@bufbuild/protobuf";
import { BinaryReader, BinaryWriter, WireType } from "@bufbuild/protobuf/wire";

/**
 * The bytes of a message that may be long: its field, or the field of a nested message and the field in that. A message is cut there while it arrives,
 * so that its bytes are copied once, to where they are used.
 */
export type LongField = readonly [...outer: DescField[], bytes: DescField];

/** The start of a message whose long field reaches to its end. */
interface CutMessage {
  /** The message without these bytes. */
  readonly head: Uint8Array;
  /** Position of the first of these bytes. */
  readonly at: number;
}

/**
 * Finds the long field of a message by its first bytes. Returns undefined if they are too few, or if the message has to be read as a whole: other fields
 * follow, or it is malformed.
 *
 * @param length of the whole message, in bytes
 */
export function findLongField(start: Uint8Array, length: number, field: LongField): CutMessage | undefined {
  const reader = new BinaryReader(start);
  /** For each message around the bytes, its fields before them. */
  const before: Uint8Array[] = [];
  let begin = 0;
  try {
    while (before.length < field.length) {
      const position = reader.pos;
      const [number, wireType] = reader.tag();
      if (wireType !== WireType.LengthDelimited) {
        if (wireType === WireType.StartGroup || wireType === WireType.EndGroup) return undefined;
        reader.skip(wireType);
        continue;
      }
      const size = reader.uint32();
      const isLong = number === field[before.length]?.number && reader.pos + size === length;
      if (isLong) {
        before.push(start.subarray(begin, position));
        begin = reader.pos;
      } else if (reader.pos + size > start.byteLength) return undefined;
      else reader.pos += size;
    }
  } catch {
    return undefined;
  }
  return { head: joined(before, field), at: begin };
}

/** Returns a message of which each nested one has the fields before the next. */
function joined(before: readonly Uint8Array[], field: LongField): Uint8Array {
  const [outermost = new Uint8Array(), ...inner] = before;
  if (inner.length === 0) return outermost;
  const { number } = field[0] as DescField;
  const nested = joined(inner, field.slice(1) as unknown as LongField);
  return new BinaryWriter().raw(outermost).tag(number, WireType.LengthDelimited).bytes(nested).finish();
}

const CONTINUES: unique symbol = Symbol("continues");

/** Returns a message that has nothing but further bytes of the long field of the one before it. */
export function continuedMessage(type: DescMessage, field: LongField, bytes: Uint8Array): Message {
  return Object.assign(putLongField(create(type), field, bytes), { [CONTINUES]: true });
}

/** Whether a message has further bytes of the one before it, and nothing else. */
export function isContinued(message: Message): boolean {
  return CONTINUES in message;
}

/** Sets the long field of a message, and returns the message. */
export function putLongField(message: Message, field: LongField, bytes: Uint8Array): Message {
  let inner = message as Message & Record<string, unknown>;
  for (const { localName, message: type } of field) {
    if (type === undefined) inner[localName] = bytes;
    else {
      inner[localName] ??= create(type);
      inner = inner[localName] as typeof inner;
    }
  }
  return message;
}
