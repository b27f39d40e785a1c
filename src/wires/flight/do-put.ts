import { create, type DescMethodClientStreaming, type Message } from "@bufbuild/protobuf";
import { ARROW_STREAM } from "../../arrow/ipc/ipc-forms.ts";
import {
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
import { type FlightJson, parseFlightJson, placeBelow, requestFromJson } from "./descriptor.ts";
import type { PipelineCalls } from "./pipeline-calls.ts";
import { readStart, streamOf, type Write } from "./put-stream.ts";
import { isSqlCommand } from "./sql/commands.ts";
import type { FlightSqlOptions } from "./sql/flight-sql.ts";
import { putSql } from "./sql/put-sql.ts";
import type { Tickets } from "./tickets.ts";

const { createTable, insertIntoTable, mergeInsertIntoTable } = LanceNamespaceService.method;

/** Values of the option `write`. */
const WRITES: Readonly<Record<string, Write>> = {
  create: { method: createTable, mode: CreateTableMode.CREATE },
  exist_ok: { method: createTable, mode: CreateTableMode.EXIST_OK },
  replace: { method: createTable, mode: CreateTableMode.OVERWRITE },
  append: { method: insertIntoTable, mode: InsertMode.APPEND },
  overwrite: { method: insertIntoTable, mode: InsertMode.OVERWRITE },
  merge: { method: mergeInsertIntoTable },
};

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
  tickets: Tickets,
  sql: FlightSqlOptions | undefined,
): Promise<PutResult> {
  const start = await readStart(requests);
  const { descriptor, options } = start;
  if (isSqlCommand(descriptor)) return putSql(start, calls, signal, tickets, sql);
  const request = requestOf(descriptor, options, calls);
  const { method } = request;
  const rows = streamOf(start, signal);
  const response = await calls.upload(method, request.message as never, rows, { ownsBody: true });
  const json = encoders.message(method.output)(response);
  return create(PutResultSchema, { appMetadata: Buffer.from(json) });
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
