import { create, type Message } from "@bufbuild/protobuf";
import { createByteReader } from "../../arrow/ipc/byte-reader.ts";
import { nextMessage } from "../../arrow/ipc/join-streams.ts";
import {
  type FlightDescriptor,
  FlightDescriptor_DescriptorType,
  type FlightInfo,
  FlightInfoSchema,
} from "../../gen/arrow/flight/protocol/Flight_pb.ts";
import { type QueryTableRequest, QueryTableRequestSchema } from "../../gen/lance/namespace/v1/query_pb.ts";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import type { Call } from "../../namespace/call/call.ts";
import { isLanceError, LanceError } from "../../namespace/errors.ts";
import type { Identifier } from "../../namespace/identifier.ts";
import { targetOf } from "./descriptor.ts";
import { flightData } from "./flight-data.ts";
import { parseFlightJson } from "./json-request.ts";
import type { PipelineCalls, Presented } from "./pipeline-calls.ts";
import { databaseIn, type TicketContent, type Tickets } from "./tickets.ts";

const { describeTable, countTableRows, queryTable, listNamespaces, listTables } =
  LanceNamespaceService.method;

/** Names on a page of a listing. */
const PAGE_NAMES = 1_000;

/** Describes the rows of a descriptor, and makes the ticket that reads them. The ticket of a table reads the version that it had. */
export async function describeFlight(
  descriptor: FlightDescriptor,
  calls: PipelineCalls,
  tickets: Tickets,
): Promise<FlightInfo> {
  const { query, isTable } = targetOf(descriptor, calls.namespacePath);
  let totalRecords = -1n;
  if (isTable) {
    const { id } = query;
    const { response } = await calls.unary(describeTable, { id, loadDetailedMetadata: true });
    const { version } = response;
    if (version !== undefined) {
      query.version = version;
      totalRecords = (await calls.unary(countTableRows, { id, version })).response.count;
    }
  }
  const { schema, call } = await schemaOf(query, calls);
  const endpoint = [tickets.issue(query, call, databaseIn(calls.headers))];
  return create(FlightInfoSchema, {
    ...{ schema, flightDescriptor: descriptor, endpoint, totalRecords, totalBytes: -1n },
    ordered: true,
  });
}

/** Returns the encapsulated schema message of the rows of a query, and the call that has read it. No row is read. */
export async function schemaOf(
  query: QueryTableRequest,
  calls: PipelineCalls,
): Promise<{ schema: Uint8Array; call: Call }> {
  const none = create(QueryTableRequestSchema, { ...query, filter: "false", k: 1n, offset: 0n });
  let call: Call | undefined;
  const begun = (own: Call) => {
    call = own;
  };
  await using reader = createByteReader(rowsOf(none, calls, {}, begun));
  const message = await nextMessage(reader);
  if (message?.kind !== "schema" || call === undefined)
    throw new LanceError("ServiceUnavailable", "the catalog's answer begins without a schema");
  return { schema: message.framed, call };
}

/** Reads the rows of a ticket. */
export function readFlight(
  { query, owner: heldBy, database }: TicketContent,
  calls: PipelineCalls,
): AsyncIterable<Message> {
  return flightData(rowsOf(query, calls, { heldBy, database }));
}

async function* rowsOf(
  query: QueryTableRequest,
  calls: PipelineCalls,
  presented: Presented,
  begun?: (call: Call) => void,
): AsyncIterable<Uint8Array> {
  for await (const { data } of calls.download(queryTable, query, presented, begun))
    if (data !== undefined) yield data.data;
}

/**
 * Lists tables: those of the namespace in the criteria, or those in the namespace of the metadata and below it. Their schemas are left out, because each
 * one would cost an opened table.
 */
export async function* listFlights(
  expression: Uint8Array,
  calls: PipelineCalls,
  tickets: Tickets,
): AsyncIterable<FlightInfo> {
  const { namespacePath } = calls;
  const only = namespaceIn(expression);
  if (only !== undefined) {
    yield* tablesOf([...namespacePath, ...only], calls, tickets);
    return;
  }
  const waiting: Identifier[] = [namespacePath];
  for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
    const namespace = next;
    try {
      yield* tablesOf(namespace, calls, tickets);
      for await (const name of pagesOf(namespace, calls)) waiting.push([...namespace, name]);
    } catch (thrown) {
      // Another call may have dropped it, and a caller may know of a namespace whose content it may not list.
      const isLeftOut = LEFT_OUT.some((name) => isLanceError(thrown, name));
      if (namespace === namespacePath || !isLeftOut) throw thrown;
    }
  }
}

const LEFT_OUT = ["NamespaceNotFound", "PermissionDenied"] as const;

async function* tablesOf(
  namespace: Identifier,
  calls: PipelineCalls,
  tickets: Tickets,
): AsyncIterable<FlightInfo> {
  const database = databaseIn(calls.headers);
  let pageToken: string | undefined;
  do {
    const page = { limit: PAGE_NAMES, includeDeclared: false, ...(pageToken && { pageToken }) };
    const { response, call } = await calls.unary(listTables, { ...page, id: [...namespace] });
    for (const table of response.tables) {
      const path = [...namespace, table];
      yield create(FlightInfoSchema, {
        flightDescriptor: {
          type: FlightDescriptor_DescriptorType.PATH,
          path: path.slice(calls.namespacePath.length),
        },
        endpoint: [tickets.issue(create(QueryTableRequestSchema, { id: path }), call, database)],
        totalRecords: -1n,
        totalBytes: -1n,
        ordered: true,
      });
    }
    ({ pageToken } = response);
  } while (pageToken);
}

async function* pagesOf(namespace: Identifier, calls: PipelineCalls): AsyncIterable<string> {
  let pageToken: string | undefined;
  do {
    const page = { limit: PAGE_NAMES, ...(pageToken && { pageToken }) };
    const { response } = await calls.unary(listNamespaces, { ...page, id: [...namespace] });
    yield* response.namespaces;
    ({ pageToken } = response);
  } while (pageToken);
}

/** Returns the namespace in criteria; undefined if there are none. */
function namespaceIn(expression: Uint8Array): readonly string[] | undefined {
  if (expression.byteLength === 0) return undefined;
  const { namespace, ...others } = parseFlightJson(expression, "the criteria").value;
  const isList = Array.isArray(namespace) && namespace.every((name) => typeof name === "string");
  if (isList && Object.keys(others).length === 0) return namespace;
  throw new LanceError("InvalidInput", 'the criteria must be {"namespace": [names]}');
}
