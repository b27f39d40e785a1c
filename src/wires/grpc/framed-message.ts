import { type DescField, type DescMessage, type Message, toBinary } from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { type HttpBody, HttpBodySchema } from "../../gen/google/api/httpbody_pb.ts";
import { bodyFieldOf } from "../../namespace/operations/message-fields.ts";
import { encodeFrame, encodeFramePieces } from "./frame.ts";

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

const NOTHING = new Uint8Array();
