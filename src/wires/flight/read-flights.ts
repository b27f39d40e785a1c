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
import { ownerKey } from "../../namespace/call/caller-key.ts";
import { LanceError } from "../../namespace/errors.ts";
import type { Identifier } from "../../namespace/identifier.ts";
import { parseFlightJson, targetOf } from "./descriptor.ts";
import { flightData } from "./flight-data.ts";
import { isLeftOut, tablePages, visibleNamespaces } from "./listing.ts";
import type { PipelineCalls, Presented } from "./pipeline-calls.ts";
import { databaseIn, type TicketContent, type Tickets } from "./tickets.ts";

const { describeTable, countTableRows, queryTable } = LanceNamespaceService.method;

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
  const endpoint = [tickets.issue({ kind: "table", query }, ownerKey(call), databaseIn(calls.headers))];
  return create(FlightInfoSchema, {
    ...{ schema, flightDescriptor: descriptor, endpoint, totalRecords, totalBytes: -1n },
    ordered: true,
  });
}

/** Returns the encapsulated schema message of the rows of a query, and the call that has read it. No row is read. */
export async function schemaOf(
  query: QueryTableRequest,
  calls: PipelineCalls,
  presented: Presented = {},
): Promise<{ schema: Uint8Array; call: Call }> {
  const none = create(QueryTableRequestSchema, { ...query, filter: "false", k: 1n, offset: 0n });
  let call: Call | undefined;
  const begun = (own: Call) => {
    call = own;
  };
  await using reader = createByteReader(rowsOf(none, calls, presented, begun));
  const message = await nextMessage(reader);
  if (message?.kind !== "schema" || call === undefined)
    throw new LanceError("ServiceUnavailable", "the catalog's answer begins without a schema");
  return { schema: message.framed, call };
}

/** Reads the rows of a ticket. */
export function readFlight(
  query: QueryTableRequest,
  { owner: heldBy, database }: TicketContent,
  calls: PipelineCalls,
): AsyncIterable<Message> {
  return flightData(rowsOf(query, calls, { heldBy, database }));
}

/** Yields the rows of a query, as an Arrow IPC stream that is cut anywhere. */
export async function* rowsOf(
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
  for await (const namespace of visibleNamespaces(namespacePath, calls)) {
    try {
      yield* tablesOf(namespace, calls, tickets);
    } catch (thrown) {
      if (namespace === namespacePath || !isLeftOut(thrown)) throw thrown;
    }
  }
}

async function* tablesOf(
  namespace: Identifier,
  calls: PipelineCalls,
  tickets: Tickets,
): AsyncIterable<FlightInfo> {
  const database = databaseIn(calls.headers);
  for await (const { tables, call } of tablePages(namespace, calls)) {
    for (const table of tables) {
      const path = [...namespace, table];
      const query = create(QueryTableRequestSchema, { id: path });
      yield create(FlightInfoSchema, {
        flightDescriptor: {
          type: FlightDescriptor_DescriptorType.PATH,
          path: path.slice(calls.namespacePath.length),
        },
        endpoint: [tickets.issue({ kind: "table", query }, ownerKey(call), database)],
        totalRecords: -1n,
        totalBytes: -1n,
        ordered: true,
      });
    }
  }
}

/** Returns the namespace in criteria; undefined if there are none. */
function namespaceIn(expression: Uint8Array): readonly string[] | undefined {
  if (expression.byteLength === 0) return undefined;
  const { namespace, ...others } = parseFlightJson(expression, "the criteria").value;
  const isList = Array.isArray(namespace) && namespace.every((name) => typeof name === "string");
  if (isList && Object.keys(others).length === 0) return namespace;
  throw new LanceError("InvalidInput", 'the criteria must be {"namespace": [names]}');
}

/** The reads that run now, by their tickets. */
export interface RunningReads {
  /** Adds a read; returns the function that removes it. */
  add(ticketId: string, call: Call): () => void;
  /** Ends the reads of a ticket, and returns their number. */
  cancel(ticketId: string): number;
}

/** Creates the list of the reads of this worker. */
export function createRunningReads(): RunningReads {
  const byTicket = new Map<string, Set<Call>>();
  return {
    add(id, call) {
      const calls = byTicket.get(id) ?? new Set();
      byTicket.set(id, calls.add(call));
      return () => {
        calls.delete(call);
        if (calls.size === 0 && byTicket.get(id) === calls) byTicket.delete(id);
      };
    },
    cancel(id) {
      const calls = [...(byTicket.get(id) ?? [])];
      for (const call of calls) call.cutOff?.(new LanceError("Cancelled", "the flight was cancelled"));
      return calls.length;
    },
  };
}
