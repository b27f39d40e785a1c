import {
  create,
  type DescMessage,
  type JsonWriteOptions,
  type Message,
  type MessageShape,
  mergeFromBinary,
  toBinary,
  toJson,
} from "@bufbuild/protobuf";
import { BinaryReader } from "@bufbuild/protobuf/wire";
import { ITEMS_PER_STEP, isLongMap, type Steps } from "../../runtime/pace.ts";

/** Bytes of a message that are decoded in a step: less than two milliseconds, if they are not a single field. */
export const DECODED_PER_STEP = 32 * 1024;

/**
 * Decodes a message in steps, as `fromBinary` does without a pause. In protobuf's binary form a message may be cut between any two of its
 * fields, and its parts merge into the whole. A single field, for example a nested message, is decoded in a single step.
 *
 * The steps throw Error for bytes that are not a message of this type.
 */
export function* decodeSteps<T extends DescMessage>(type: T, bytes: Uint8Array): Steps<MessageShape<T>> {
  const message = create(type);
  const reader = new BinaryReader(bytes);
  let start = 0;
  while (start < bytes.byteLength) {
    if (start > 0) yield;
    const least = Math.min(start + DECODED_PER_STEP, bytes.byteLength);
    while (reader.pos < least) {
      const [number, wireType] = reader.tag();
      reader.skip(wireType, number);
    }
    mergeFromBinary(type, message, bytes.subarray(start, reader.pos));
    start = reader.pos;
  }
  return message;
}

/** Whether a message has a list or a map that {@link encodeSteps} encodes in steps. */
export function isLongMessage<T extends DescMessage>(type: T, message: MessageShape<T>): boolean {
  const record = message as Message & Record<string, unknown>;
  return type.fields.some(({ fieldKind, localName }) => {
    if (fieldKind === "list") return (record[localName] as readonly unknown[]).length > ITEMS_PER_STEP;
    return fieldKind === "map" && isLongMap(record[localName] as object);
  });
}

/**
 * Encodes a message in steps: the items of long lists and the entries of long maps first, and then everything else. The parts together, in
 * their order, are the message in protobuf's binary form.
 */
export function* encodeSteps<T extends DescMessage>(type: T, message: MessageShape<T>): Steps<Uint8Array[]> {
  const parts: Uint8Array[] = [];
  for (const { part } of partsOf(type, message)) {
    if (parts.length > 0) yield;
    parts.push(toBinary(type, part));
  }
  return parts;
}

/** Encodes a message as protobuf's JSON, in the steps of {@link encodeSteps}. The pieces together are the text. */
export function* encodeJsonSteps<T extends DescMessage>(
  type: T,
  message: MessageShape<T>,
  options?: Partial<JsonWriteOptions>,
): Steps<Uint8Array[]> {
  const pieces: Uint8Array[] = [];
  let [field, before, close] = ["", "{", ""];
  for (const { name, part } of partsOf(type, message)) {
    if (pieces.length > 0) yield;
    // Without its braces: for a piece of a field, its name, a colon, and the piece in brackets.
    const text = JSON.stringify(toJson(type, part, options)).slice(1, -1);
    if (name !== "" && name === field) {
      pieces.push(Buffer.from(`,${text.slice(text.indexOf(":") + 2, -1)}`));
      continue;
    }
    pieces.push(Buffer.from(`${close}${text === "" ? "" : before}${name === "" ? text : text.slice(0, -1)}`));
    if (text !== "") before = ",";
    [field, close] = [name, name === "" ? "" : text.slice(-1)];
  }
  pieces.push(Buffer.from(before === "{" ? "{}" : "}"));
  return pieces;
}

/** Yields messages that merge into a message: the pieces of its long lists and maps, with the name of the field, and everything else. */
function* partsOf<T extends DescMessage>(
  type: T,
  message: MessageShape<T>,
): Generator<{ readonly name: string; readonly part: MessageShape<T> }> {
  const rest: Message & Record<string, unknown> = { ...message };
  for (const { fieldKind, localName: name } of type.fields) {
    if (fieldKind !== "list" && fieldKind !== "map") continue;
    const values = rest[name] as readonly unknown[] | object;
    const pieces = Array.isArray(values) ? piecesOfList(values) : piecesOfMap(values);
    for (const piece of pieces) {
      const part = create(type) as typeof rest;
      part[name] = piece;
      rest[name] = fieldKind === "list" ? [] : {};
      yield { name, part: part as MessageShape<T> };
    }
  }
  yield { name: "", part: rest as MessageShape<T> };
}

/** Yields the items of a long list, in pieces. */
function* piecesOfList(items: readonly unknown[]): Generator<readonly unknown[]> {
  if (items.length <= ITEMS_PER_STEP) return;
  for (let at = 0; at < items.length; at += ITEMS_PER_STEP) yield items.slice(at, at + ITEMS_PER_STEP);
}

/** Yields the entries of a long map, in pieces. */
function* piecesOfMap(map: object): Generator<object> {
  if (!isLongMap(map)) return;
  const values = map as Readonly<Record<string, unknown>>;
  for (const keys of piecesOfList(Object.keys(values)))
    yield Object.fromEntries((keys as string[]).map((key) => [key, values[key]]));
}
