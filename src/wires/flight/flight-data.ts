import type { Message } from "@bufbuild/protobuf";
import {
  CONTINUATION,
  MAX_METADATA_BYTES,
  type MessageHead,
  parseMessageHead,
} from "../../arrow/ipc/message.ts";
import { FlightDataSchema } from "../../gen/arrow/flight/protocol/Flight_pb.ts";
import { LanceError } from "../../namespace/errors.ts";
import { framedMessage } from "../grpc/frame.ts";

/** Largest body of a message, in bytes: clients read its length as a signed number of 32 bits. */
const MAX_BODY_BYTES = 2 ** 31 - 1 - MAX_METADATA_BYTES - 64;

/** Bytes before a message of gRPC: a flag and a length. */
const GRPC_HEAD_BYTES = 5;

/** Tags of `data_header` and `data_body`. */
const HEADER_TAG = [0x12];
const BODY_TAG = [0xc2, 0x3e];

/**
 * Cuts an Arrow IPC stream, which arrives split anywhere, into messages of Flight. The body of a message remains in the memory of its chunks, whose
 * pieces are messages of {@link framedMessage}: a chunk is sent when the next one is asked for.
 *
 * @throws LanceError ServiceUnavailable for a stream that is not whole: the catalog is at fault
 */
export async function* flightData(chunks: AsyncIterable<Uint8Array>): AsyncIterable<Message> {
  const reader = createMessageReader();
  for await (const chunk of chunks) {
    for (let at = 0; at < chunk.byteLength && !reader.ended; ) {
      const { taken, pieces } = reader.add(chunk.subarray(at));
      at += taken;
      if (pieces.length > 0) yield framedMessage(FlightDataSchema, pieces);
    }
  }
  if (reader.isInside) throw broken("it ends in the middle of a message");
}

function createMessageReader() {
  let part: "prefix" | "metadata" = "prefix";
  /** The prefix or the metadata, which is filled now, and its end. */
  let target: Buffer = Buffer.alloc(8);
  let [filled, end] = [0, 4];
  /** Number of bytes of the body that have not arrived. */
  let missing = 0;
  let ended = false;

  function begin(next: typeof part, buffer: Buffer, to: number): void {
    [part, target, filled, end] = [next, buffer, 0, to];
  }
  function endPrefix(): void {
    if (end === 4 && target.readUInt32LE(0) === CONTINUATION) {
      end = 8;
      return;
    }
    const length = target.readUInt32LE(end - 4);
    if (length > MAX_METADATA_BYTES) throw broken(`the metadata of a message has ${length} bytes`);
    ended = length === 0;
    if (!ended) begin("metadata", Buffer.allocUnsafe(length), length);
  }
  /** Returns the frame without its body. */
  function endMetadata(): Buffer {
    const { bodyLength } = headOf(target);
    if (bodyLength > MAX_BODY_BYTES) throw broken(`a batch has ${bodyLength} bytes`);
    const head = frameHead(target, bodyLength);
    missing = bodyLength;
    begin("prefix", Buffer.alloc(8), 4);
    return head;
  }
  return {
    /** Whether the stream has had its end. */
    get ended() {
      return ended;
    },
    /** Whether a message has begun. */
    get isInside() {
      return !ended && (missing > 0 || part === "metadata" || filled > 0);
    },
    /** Reads bytes to the end of a message at most. Returns their number, and the pieces of the frame that they complete. */
    add(bytes: Uint8Array): { taken: number; pieces: readonly Uint8Array[] } {
      const pieces: Uint8Array[] = [];
      let taken = 0;
      while (missing === 0 && taken < bytes.byteLength && !ended && pieces.length === 0) {
        const more = Math.min(bytes.byteLength - taken, end - filled);
        target.set(bytes.subarray(taken, taken + more), filled);
        filled += more;
        taken += more;
        if (filled < end) continue;
        if (part === "prefix") endPrefix();
        else pieces.push(endMetadata());
      }
      const ofBody = Math.min(missing, bytes.byteLength - taken);
      if (ofBody > 0) pieces.push(bytes.subarray(taken, taken + ofBody));
      missing -= ofBody;
      return { taken: taken + ofBody, pieces };
    },
  };
}

/** Returns the bytes of a frame before its body. */
function frameHead(metadata: Uint8Array, bodyLength: number): Buffer {
  const header = [...HEADER_TAG, ...varint(metadata.byteLength)];
  const body = bodyLength === 0 ? [] : [...BODY_TAG, ...varint(bodyLength)];
  const length = header.length + metadata.byteLength + body.length;
  const head = Buffer.allocUnsafe(GRPC_HEAD_BYTES + length);
  head[0] = 0;
  head.writeUInt32BE(length + bodyLength, 1);
  let at = GRPC_HEAD_BYTES;
  for (const part of [header, metadata, body]) {
    head.set(part, at);
    at += part.length;
  }
  return head;
}

function varint(value: number): number[] {
  const bytes: number[] = [];
  let rest = value;
  for (; rest > 0x7f; rest = Math.floor(rest / 0x80)) bytes.push((rest % 0x80) | 0x80);
  bytes.push(rest);
  return bytes;
}

function headOf(metadata: Uint8Array): MessageHead {
  try {
    return parseMessageHead(metadata, 0);
  } catch (cause) {
    throw broken((cause as Error).message, cause);
  }
}

function broken(reason: string, cause?: unknown): LanceError {
  return new LanceError("ServiceUnavailable", `the catalog's answer is no whole Arrow: ${reason}`, { cause });
}
