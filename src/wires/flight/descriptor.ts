import { create, type DescMessage, type Message, type MessageShape } from "@bufbuild/protobuf";
import {
  type FlightDescriptor,
  FlightDescriptor_DescriptorType as Type,
} from "../../gen/arrow/flight/protocol/Flight_pb.ts";
import { type QueryTableRequest, QueryTableRequestSchema } from "../../gen/lance/namespace/v1/query_pb.ts";
import { LanceError } from "../../namespace/errors.ts";
import { type Identifier, parseIdentifier } from "../../namespace/identifier.ts";
import { isJsonObject } from "../../runtime/text.ts";
import { toInvalidInput, within } from "../../transcode/field-error.ts";
import { createJsonDecoders } from "../../transcode/json/decode.ts";
import { parseJson } from "../../transcode/json/parse.ts";
import { refuseRepeatedNames } from "../../transcode/json/repeated-names.ts";

/** Rows that a descriptor means. */
export interface Target {
  readonly query: QueryTableRequest;
  /** Whether it is a whole table. */
  readonly isTable: boolean;
}

/**
 * Returns the rows that a descriptor means: those of a table for a path, those of a query for a command, which is the JSON of QueryTable.
 *
 * @throws LanceError InvalidInput
 */
export function targetOf(descriptor: FlightDescriptor, namespacePath: Identifier): Target {
  const isTable = descriptor.type === Type.PATH;
  const query = isTable ? create(QueryTableRequestSchema, { id: descriptor.path }) : queryOf(descriptor);
  placeBelow(namespacePath, query);
  return { query, isTable };
}

function queryOf({ type, cmd }: FlightDescriptor): QueryTableRequest {
  if (type !== Type.CMD) throw new LanceError("InvalidInput", "the descriptor must be a path or a command");
  return requestFromJson(QueryTableRequestSchema, parseFlightJson(cmd, "the command"));
}

/** Longest JSON in a descriptor or beside rows, in bytes; it is parsed in a single turn of the event loop. */
const MAX_JSON_BYTES = 1024 * 1024;

const UTF8 = new TextDecoder("utf-8", { fatal: true });

const decoders = createJsonDecoders();

/** Fields in which a request of the namespace may carry who calls. A ticket must not carry it, as every holder would be that caller. */
const CALLER_FIELDS = ["identity", "context"];

/** A JSON object that a Flight client has sent as bytes. */
export interface FlightJson {
  readonly text: string;
  readonly value: Readonly<Record<string, unknown>>;
  /** Name of it, for errors. */
  readonly what: string;
}

/** @throws LanceError InvalidInput for bytes that are not a JSON object */
export function parseFlightJson(bytes: Uint8Array, what: string): FlightJson {
  if (bytes.byteLength > MAX_JSON_BYTES)
    throw new LanceError("InvalidInput", `${what} is longer than ${MAX_JSON_BYTES} bytes`);
  let text: string;
  try {
    text = UTF8.decode(bytes);
  } catch (cause) {
    throw new LanceError("InvalidInput", `${what} is not UTF-8`, { cause });
  }
  const value = parseJson(text, what);
  if (isJsonObject(value)) return { text, value, what };
  throw new LanceError("InvalidInput", `${what} must be a JSON object`);
}

/**
 * Reads the request of an operation from its JSON, in the names of the REST API.
 *
 * @param own name of a field that is not the operation's. Default: none.
 * @throws LanceError InvalidInput, also for fields that name the caller, and for unknown ones
 */
export function requestFromJson<D extends DescMessage>(
  descriptor: D,
  { text, value, what }: FlightJson,
  own?: string,
): MessageShape<D> {
  refuseRepeatedNames(text, value, what);
  const message = create(descriptor) as Message & Record<string, unknown>;
  for (const name in value) {
    const json = value[name];
    if (name === own || json === null) continue;
    if (CALLER_FIELDS.includes(name))
      throw new LanceError("InvalidInput", `${what} must not have ${name}: the metadata names the caller`);
    const field = descriptor.fields.find((each) => each.name === name);
    if (field === undefined || name === "data")
      throw new LanceError("InvalidInput", `${what} has the unknown field ${JSON.stringify(name)}`);
    try {
      message[field.localName] = decoders.field(field)(json, 1);
    } catch (thrown) {
      throw toInvalidInput(within(name, thrown), "field", what);
    }
  }
  return message as MessageShape<D>;
}

/** The part of a request that names its table. */
interface Named {
  id: string[];
  identifier: string;
  delimiter?: string | undefined;
}

/**
 * Makes the name of a request's table begin from a namespace.
 *
 * @throws LanceError InvalidInput for a request without a name
 */
export function placeBelow(namespacePath: Identifier, request: Named): void {
  const own = request.identifier ? parseIdentifier(request.identifier, request.delimiter) : request.id;
  if (own.length === 0) throw new LanceError("InvalidInput", "the descriptor names no table");
  if (namespacePath.length === 0) return;
  request.id = [...namespacePath, ...own];
  request.identifier = "";
}
