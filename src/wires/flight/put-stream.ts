import { setImmediate } from "node:timers/promises";
import type { DescMethodClientStreaming, Message } from "@bufbuild/protobuf";
import { CONTINUATION, parseMessageHead } from "../../arrow/ipc/message.ts";
import { END_OF_STREAM } from "../../arrow/ipc/stream.ts";
import type { FlightData, FlightDescriptor } from "../../gen/arrow/flight/protocol/Flight_pb.ts";
import type { CreateTableMode, InsertMode } from "../../gen/lance/namespace/v1/data_pb.ts";
import { LanceError } from "../../namespace/errors.ts";
import { isContinued } from "../grpc/long-field.ts";
import { type FlightJson, parseFlightJson } from "./descriptor.ts";

/** Bytes to which the metadata of a message is padded, with its prefix. */
const ALIGNMENT = 8;

/** A way of writing: the operation, and its mode. */
export interface Write {
  readonly method: DescMethodClientStreaming;
  readonly mode?: CreateTableMode | InsertMode;
}

/** The start of a stream: everything to its first rows. */
export interface PutStart {
  readonly descriptor: FlightDescriptor;
  readonly options: FlightJson | undefined;
  /** Messages with Arrow, of which the last one may go on in `rest`. */
  readonly head: readonly FlightData[];
  readonly rest: AsyncIterator<Message>;
}

/**
 * Reads a stream to its first rows. Clients send the schema first, and options beside it, beside the first rows or between them.
 *
 * @throws LanceError InvalidInput for a stream without a descriptor, and for options in two places
 */
export async function readStart(requests: AsyncIterable<Message>): Promise<PutStart> {
  const rest = requests[Symbol.asyncIterator]();
  const head: FlightData[] = [];
  let descriptor: FlightDescriptor | undefined;
  let options: FlightJson | undefined;
  let isArrow = false;
  for (let next = await rest.next(); !next.done; next = await rest.next()) {
    const message = next.value as FlightData;
    if (isContinued(message)) {
      if (isArrow) head.push(message);
      continue;
    }
    descriptor ??= message.flightDescriptor;
    if (descriptor === undefined)
      throw new LanceError("InvalidInput", "the first message of a stream must have a descriptor");
    if (message.appMetadata.byteLength > 0) {
      if (options !== undefined) throw lateOptions();
      options = parseFlightJson(message.appMetadata, "app_metadata");
    }
    isArrow = message.dataHeader.byteLength > 0;
    if (!isArrow) continue;
    head.push(message);
    if (parseMessageHead(message.dataHeader, 0).kind !== "schema") break;
  }
  if (descriptor === undefined) throw new LanceError("InvalidInput", "the stream has no message");
  return { descriptor, options, head, rest };
}

function lateOptions(): LanceError {
  return new LanceError("InvalidInput", "app_metadata has the options once, with or before the first rows");
}

/**
 * Returns the IPC stream in the messages of a call, in chunks that nothing else reads. It has its end only if the client has ended the call.
 *
 * @param passed called for each message before its bytes. Default: nothing is called.
 */
export async function* streamOf(
  { head, rest }: PutStart,
  signal: AbortSignal,
  passed: (message: FlightData) => void = () => {},
): AsyncIterable<Uint8Array> {
  if (head.length === 0) throw new LanceError("InvalidInput", "the stream has no schema");
  for (const message of head) {
    if (!isContinued(message)) {
      passed(message);
      yield ipcHead(message);
    }
    if (message.dataBody.byteLength > 0) yield message.dataBody;
  }
  let isArrow = true;
  for (let next = await rest.next(); !next.done; next = await rest.next()) {
    const message = next.value as FlightData;
    if (!isContinued(message)) {
      if (message.appMetadata.byteLength > 0) throw lateOptions();
      isArrow = message.dataHeader.byteLength > 0;
      if (!isArrow) continue;
      passed(message);
      yield ipcHead(message);
    }
    if (isArrow && message.dataBody.byteLength > 0) yield message.dataBody;
  }
  // Clients on Node end a request before they reset it, and the reset arrives a turn later.
  for (let turn = 0; turn < RESET_TURNS; turn++) await setImmediate();
  signal.throwIfAborted();
  // Its reader may free every chunk.
  yield END_OF_STREAM.slice();
}

/** Turns of the event loop in which the reset of a request that has ended arrives. */
const RESET_TURNS = 3;

/** Returns the number of rows in a message of Arrow. */
export function rowsIn({ dataHeader }: FlightData): number {
  const head = parseMessageHead(dataHeader, 0);
  return head.kind === "batch" ? head.rows : 0;
}

/** Returns the prefix and the metadata of a message as a stream has them. */
function ipcHead({ dataHeader }: FlightData): Uint8Array {
  const length = Math.ceil(dataHeader.byteLength / ALIGNMENT) * ALIGNMENT;
  const head = Buffer.alloc(8 + length);
  head.writeUInt32LE(CONTINUATION, 0);
  head.writeUInt32LE(length, 4);
  head.set(dataHeader, 8);
  return head;
}
