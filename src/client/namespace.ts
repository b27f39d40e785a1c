import {
  create,
  type DescMethodClientStreaming,
  type DescMethodServerStreaming,
  type DescMethodUnary,
  type Message,
} from "@bufbuild/protobuf";
import type { Schema } from "apache-arrow";
import { ARROW_STREAM } from "../arrow/ipc/ipc-forms.ts";
import { type HttpBody, HttpBodySchema } from "../gen/google/api/httpbody_pb.ts";
import {
  type InsertIntoTableRequest,
  InsertMode,
  type MergeInsertIntoTableRequest,
} from "../gen/lance/namespace/v1/data_pb.ts";
import { LanceNamespaceService } from "../gen/lance/namespace/v1/service_pb.ts";
import { bodyFieldOf } from "../namespace/operations/method-facts.ts";
import type { AnyMethod } from "../namespace/service.ts";
import { type Caller, createCaller } from "./caller.ts";
import type { NamespaceImplementation } from "./connections/properties.ts";
import { toMessage } from "./input.ts";
import { createListing } from "./listing.ts";
import { type ArrowData, toIpcStream } from "./rows/arrow-input.ts";
import { createQueryResult } from "./rows/query-result.ts";
import { createTableMethods, type LoadLanceDb, type TableMethods } from "./tables.ts";
import { type CallOptions, LISTINGS, type Operations } from "./types.ts";

/** A connection to a catalog, with the same interface to every backend. */
export interface Namespace extends Omit<Operations, keyof TableMethods>, TableMethods {
  /** Name of the implementation, for example `rest`. */
  readonly implementation: string;
  /** Description of the connection's target, for people; it contains no credentials. */
  readonly description: string;
  /** Closes connections and files. Running calls fail, and later ones are Cancelled. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * Creates the client's interface to an implementation.
 *
 * @param load Default: `openTable` is not supported.
 */
export function createNamespace(implementation: NamespaceImplementation, load?: LoadLanceDb): Namespace {
  const { name, description = name, headers, lancedb } = implementation;
  const closing = new AbortController();
  const { operations: handlers, description: server } = implementation;
  const caller = createCaller(name, handlers, headers, server, closing.signal);
  const entries = LanceNamespaceService.methods.map((method: AnyMethod) => [
    method.localName,
    operationOf(method, caller),
  ]);
  const operations = Object.fromEntries(entries) as Operations;
  const tables = createTableMethods(operations, name, lancedb, load);
  const close = async () => {
    closing.abort();
    await tables.close();
    await implementation.close?.();
  };
  return {
    ...operations,
    ...tables.methods,
    implementation: name,
    description,
    close,
    [Symbol.asyncDispose]: close,
  };
}

function operationOf(method: AnyMethod, caller: Caller): unknown {
  switch (method.methodKind) {
    case "unary":
      return method.localName in LISTINGS ? listing(method, caller) : unary(method, caller);
    case "client_streaming":
      return async (input: object, data: ArrowData, options: CallOptions = {}) => {
        const message = withContentType(method, input);
        const findSchema = keepsSchema(method, message)
          ? () => schemaOf(message as Message as Rows, caller, options)
          : undefined;
        return caller.upload(method, message, toIpcStream(data, findSchema), options);
      };
    case "server_streaming":
      return download(method, caller);
    default:
      throw new Error(`${method} streams both ways, which no operation does`);
  }
}

/** Whether the rows of an upload must fit an existing table. */
function keepsSchema(method: AnyMethod, message: Message): boolean {
  const { insertIntoTable, mergeInsertIntoTable } = LanceNamespaceService.method;
  if (method === mergeInsertIntoTable) return true;
  return method === insertIntoTable && (message as InsertIntoTableRequest).mode !== InsertMode.OVERWRITE;
}

type Rows = InsertIntoTableRequest | MergeInsertIntoTableRequest;

/**
 * Returns the schema of a table, from the result of a query without rows; the upload itself reports a problem with
 * the table.
 */
async function schemaOf(
  { id, identifier, branch }: Rows,
  caller: Caller,
  options: CallOptions,
): Promise<Schema | undefined> {
  const query = download(LanceNamespaceService.method.queryTable, caller);
  const result = query({ id, identifier, branch, filter: "false", k: 1 }, options);
  const table = await result.toTable().catch(() => undefined);
  return table?.schema;
}

function unary(method: DescMethodUnary, caller: Caller) {
  return async (input: object = {}, options: CallOptions = {}) =>
    caller.unary(method, toMessage(method.input, input), options);
}

function listing(method: DescMethodUnary, caller: Caller) {
  const call = unary(method, caller);
  const field = LISTINGS[method.localName as keyof typeof LISTINGS];
  return (input: object = {}, options?: CallOptions) =>
    createListing(
      (pageToken) => call(pageToken === undefined ? input : { ...input, pageToken }, options),
      field,
    );
}

function withContentType(method: DescMethodClientStreaming, input: object) {
  const message = toMessage(method.input, input);
  const body = create(HttpBodySchema, { contentType: ARROW_STREAM });
  return Object.assign(message, { [bodyFieldOf(method.input) as string]: body });
}

function download(method: DescMethodServerStreaming, caller: Caller) {
  const field = bodyFieldOf(method.output) as string;
  return (input: object = {}, options: CallOptions = {}) =>
    createQueryResult(async function* () {
      const messages = caller.download(method, toMessage(method.input, input), options);
      for await (const message of messages) {
        const body = (message as unknown as Record<string, HttpBody | undefined>)[field];
        if (body !== undefined && body.data.length > 0) yield body.data;
      }
    });
}
