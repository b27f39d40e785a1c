import { setImmediate } from "node:timers/promises";
import { create, type DescMethodClientStreaming, type Message } from "@bufbuild/protobuf";
import { ARROW_STREAM } from "../../arrow/ipc/ipc-forms.ts";
import { CONTINUATION, parseMessageHead } from "../../arrow/ipc/message.ts";
import { END_OF_STREAM } from "../../arrow/ipc/stream.ts";
import {
  type FlightData,
  type FlightDescriptor,
  type PutResult,
  PutResultSchema,
  FlightDescriptor_DescriptorType as Type,
} from "../../gen/arrow/flight/protocol/Flight_pb.ts";
import { HttpBodySchema } from "../../gen/google/api/httpbody_pb.ts";
import { CreateTableMode, InsertMode } from "../../gen/lance/namespace/v1/data_pb.ts";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import { LanceError } from "../../namespace/errors.ts";
import { createJsonEncoders } from "../../transcode/json/encode.ts";
import { type FlightJson, parseFlightJson, placeBelow, requestFromJson } from "./json-request.ts";
import type { PipelineCalls } from "./pipeline-calls.ts";

const { createTable, insertIntoTable, mergeInsertIntoTable } = LanceNamespaceService.method;

/** A way of writing: the operation, and its mode. */
interface Write {
  readonly method: DescMethodClientStreaming;
  readonly mode?: CreateTableMode | InsertMode;
}

/** Values of the option `write`. */
const WRITES: Readonly<Record<string, Write>> = {
  create: { method: createTable, mode: CreateTableMode.CREATE },
  exist_ok: { method: createTable, mode: CreateTableMode.EXIST_OK },
  replace: { method: createTable, mode: CreateTableMode.OVERWRITE },
  append: { method: insertIntoTable, mode: InsertMode.APPEND },
  overwrite: { method: insertIntoTable, mode: InsertMode.OVERWRITE },
  merge: { method: mergeInsertIntoTable },
};

/** Bytes to which the metadata of a message is padded, with its prefix. */
const ALIGNMENT = 8;

const encoders = createJsonEncoders();

/**
 * Writes the rows of a stream to a table, and returns the response of the operation as JSON.
 *
 * The rows are those of a whole stream or none: a stream that the client breaks off changes nothing.
 */
export async function putFlight(
  requests: AsyncIterable<Message>,
  calls: PipelineCalls,
  signal: AbortSignal,
): Promise<PutResult> {
  const { descriptor, options, head, rest } = await readStart(requests);
  const request = requestOf(descriptor, options, calls);
  const { method } = request;
  const response = await calls.upload(method, request.message as never, streamOf(head, rest, signal));
  const json = encoders.message(method.output)(response);
  return create(PutResultSchema, { appMetadata: Buffer.from(json) });
}

/** The start of a stream: everything to its first rows. */
interface Start {
  readonly descriptor: FlightDescriptor;
  readonly options: FlightJson | undefined;
  /** Messages with Arrow. */
  readonly head: readonly FlightData[];
  readonly rest: AsyncIterator<Message>;
}

/**
 * Reads a stream to its first rows. Clients send the schema first, and options beside it, beside the first rows or between them.
 *
 * @throws LanceError InvalidInput for a stream without a descriptor or a schema, and for options in two places
 */
async function readStart(requests: AsyncIterable<Message>): Promise<Start> {
  const rest = requests[Symbol.asyncIterator]();
  const head: FlightData[] = [];
  let descriptor: FlightDescriptor | undefined;
  let options: FlightJson | undefined;
  for (let next = await rest.next(); !next.done; next = await rest.next()) {
    const message = next.value as FlightData;
    descriptor ??= message.flightDescriptor;
    if (descriptor === undefined)
      throw new LanceError("InvalidInput", "the first message of a stream must have a descriptor");
    if (message.appMetadata.byteLength > 0) {
      if (options !== undefined) throw lateOptions();
      options = parseFlightJson(message.appMetadata, "app_metadata");
    }
    if (message.dataHeader.byteLength === 0) continue;
    head.push(message);
    if (parseMessageHead(message.dataHeader, 0).kind !== "schema") break;
  }
  if (descriptor === undefined || head.length === 0)
    throw new LanceError("InvalidInput", "the stream has no schema");
  return { descriptor, options, head, rest };
}

function lateOptions(): LanceError {
  return new LanceError("InvalidInput", "app_metadata has the options once, with or before the first rows");
}

/** Returns the request without rows. */
function requestOf(
  descriptor: FlightDescriptor,
  beside: FlightJson | undefined,
  { namespacePath }: PipelineCalls,
): { method: DescMethodClientStreaming; message: Message } {
  const isPath = descriptor.type === Type.PATH;
  if (!isPath && beside !== undefined)
    throw new LanceError("InvalidInput", "the options are either the command or in app_metadata, not both");
  const json = isPath ? beside : parseFlightJson(descriptor.cmd, "the command");
  const { write = "append" } = json?.value ?? {};
  const { method, mode } = WRITES[String(write)] ?? unknownWrite(write);
  const message = requestFromJson(method.input, json ?? NO_OPTIONS, "write") as Message & WriteRequest;
  if (json !== undefined && "mode" in json.value)
    throw new LanceError("InvalidInput", `${json.what} must not have mode: the option write says it`);
  if (isPath) {
    if (message.id.length > 0 || message.identifier !== "")
      throw new LanceError("InvalidInput", "the path of the descriptor names the table");
    message.id = [...descriptor.path];
  }
  placeBelow(namespacePath, message);
  if (mode !== undefined) message.mode = mode;
  message.data = create(HttpBodySchema, { contentType: ARROW_STREAM });
  return { method, message };
}

/** The fields that the requests of all writes have. */
interface WriteRequest {
  id: string[];
  identifier: string;
  mode?: number;
  data?: Message;
}

const NO_OPTIONS: FlightJson = { text: "{}", value: {}, what: "app_metadata" };

function unknownWrite(write: unknown): never {
  const known = Object.keys(WRITES).join(", ");
  throw new LanceError("InvalidInput", `write is ${JSON.stringify(write)}, and must be one of ${known}`);
}

/** Returns the IPC stream in the messages of a call. It has its end only if the client has ended the call. */
async function* streamOf(
  head: readonly FlightData[],
  rest: AsyncIterator<Message>,
  signal: AbortSignal,
): AsyncIterable<Uint8Array> {
  for (const message of head) yield* ipcMessage(message);
  for (let next = await rest.next(); !next.done; next = await rest.next()) {
    const message = next.value as FlightData;
    if (message.appMetadata.byteLength > 0) throw lateOptions();
    if (message.dataHeader.byteLength > 0) yield* ipcMessage(message);
  }
  // Clients on Node end a request before they reset it, and the reset arrives a turn later.
  for (let turn = 0; turn < RESET_TURNS; turn++) await setImmediate();
  signal.throwIfAborted();
  yield END_OF_STREAM;
}

/** Turns of the event loop in which the reset of a request that has ended arrives. */
const RESET_TURNS = 3;

/** Yields the parts of a message as a stream has them. */
function* ipcMessage({ dataHeader, dataBody }: FlightData): Iterable<Uint8Array> {
  const length = Math.ceil(dataHeader.byteLength / ALIGNMENT) * ALIGNMENT;
  const head = Buffer.alloc(8 + length);
  head.writeUInt32LE(CONTINUATION, 0);
  head.writeUInt32LE(length, 4);
  head.set(dataHeader, 8);
  yield head;
  if (dataBody.byteLength > 0) yield dataBody;
}
