import type { Message } from "@bufbuild/protobuf";
import {
  CONTINUATION,
  MAX_METADATA_BYTES,
  type MessageHead,
  parseMessageHead,
} from "../../arrow/ipc/message.ts";
import { FlightDataSchema } from "../../gen/arrow/flight/protocol/Flight_pb.ts";
import { LanceError } from "../../namespace/errors.ts";
import { framedMessage } from "../grpc/framed-message.ts";

/** Largest body of a message, in bytes: clients read its length as a signed number of 32 bits. */
const MAX_BODY_BYTES = 2 ** 31 - 1 - MAX_METADATA_BYTES - 64;

/** Bytes before a message of gRPC: a flag and a length. */
const GRPC_HEAD_BYTES = 5;

/** Least size of a frame whose memory serves again: a stream takes all of such a frame before it asks for the next message. */
const REUSED_BYTES = 256 * 1024;

/** Tags of `data_header` and `data_body`. */
const HEADER_TAG = [0x12];
const BODY_TAG = [0xc2, 0x3e];

/**
 * Cuts an Arrow IPC stream, which arrives split anywhere, into messages of Flight. Each byte is copied once, into the frame that is sent, so that
 * the memory of a chunk is free when the next one is asked for. So is that of a large frame: the collector would take longer than the copy.
 *
 * @throws LanceError ServiceUnavailable for a stream that is not whole: the catalog is at fault
 */
export async function* flightData(chunks: AsyncIterable<Uint8Array>): AsyncIterable<Message> {
  let spare: Buffer | undefined;
  const reader = createMessageReader((length) => {
    if (spare === undefined || spare.byteLength < length) spare = Buffer.allocUnsafeSlow(length);
    return spare.subarray(0, length);
  });
  for await (const chunk of chunks) {
    for (let at = 0; at < chunk.byteLength && !reader.ended; ) {
      at += reader.add(chunk.subarray(at));
      const frame = reader.take();
      if (frame !== undefined) yield framedMessage(FlightDataSchema, frame);
    }
  }
  if (reader.isInside) throw broken("it ends in the middle of a message");
}

/** @param memoryOf returns memory for a large frame */
function createMessageReader(memoryOf: (length: number) => Buffer) {
  let part: "prefix" | "metadata" | "body" = "prefix";
  /** Buffer that is filled now: the prefix, the metadata or the frame. */
  let target: Buffer = Buffer.alloc(8);
  let [filled, end] = [0, 4];
  let whole: Buffer | undefined;
  let ended = false;

  function begin(next: typeof part, buffer: Buffer, from: number, to: number): void {
    [part, target, filled, end] = [next, buffer, from, to];
  }
  function complete(): void {
    switch (part) {
      case "prefix": {
        if (end === 4 && target.readUInt32LE(0) === CONTINUATION) {
          end = 8;
          return;
        }
        const length = target.readUInt32LE(end - 4);
        if (length > MAX_METADATA_BYTES) throw broken(`the metadata of a message has ${length} bytes`);
        ended = length === 0;
        if (!ended) begin("metadata", Buffer.allocUnsafe(length), 0, length);
        return;
      }
      case "metadata": {
        const { bodyLength } = headOf(target);
        if (bodyLength > MAX_BODY_BYTES) throw broken(`a batch has ${bodyLength} bytes`);
        const { frame, bodyAt } = openFrame(target, bodyLength, memoryOf);
        begin("body", frame, bodyAt, frame.byteLength);
        if (bodyLength === 0) complete();
        return;
      }
      case "body":
        whole = target;
        begin("prefix", Buffer.alloc(8), 0, 4);
    }
  }
  return {
    /** Whether the stream has had its end. */
    get ended() {
      return ended;
    },
    /** Whether a message has begun. */
    get isInside() {
      return !ended && (part !== "prefix" || filled > 0);
    },
    /** Takes bytes to the end of what is filled now, and returns their number. */
    add(bytes: Uint8Array): number {
      const taken = Math.min(bytes.byteLength, end - filled);
      target.set(bytes.subarray(0, taken), filled);
      filled += taken;
      if (filled === end) complete();
      return taken;
    },
    /** Returns the frame that is complete, once. */
    take(): Buffer | undefined {
      const frame = whole;
      whole = undefined;
      return frame;
    },
  };
}

/** Returns a frame with everything but the body. */
function openFrame(
  metadata: Uint8Array,
  bodyLength: number,
  memoryOf: (length: number) => Buffer,
): { frame: Buffer; bodyAt: number } {
  const header = [...HEADER_TAG, ...varint(metadata.byteLength)];
  const body = bodyLength === 0 ? [] : [...BODY_TAG, ...varint(bodyLength)];
  const length = header.length + metadata.byteLength + body.length + bodyLength;
  const bytes = GRPC_HEAD_BYTES + length;
  const frame = bytes < REUSED_BYTES ? Buffer.allocUnsafeSlow(bytes) : memoryOf(bytes);
  frame[0] = 0;
  frame.writeUInt32BE(length, 1);
  let at = GRPC_HEAD_BYTES;
  for (const part of [header, metadata, body]) {
    frame.set(part, at);
    at += part.length;
  }
  return { frame, bodyAt: at };
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
