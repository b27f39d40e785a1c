import { create, type DescMethod, type Message } from "@bufbuild/protobuf";
import {
  type Action,
  type Criteria,
  FlightDataSchema,
  type FlightDescriptor,
  FlightService,
  PollInfoSchema,
  SchemaResultSchema,
  type Ticket,
} from "../../gen/arrow/flight/protocol/Flight_pb.ts";
import type { Call } from "../../namespace/call/call.ts";
import type { Service } from "../../namespace/service.ts";
import { onlyRequest, type Rpc, type StreamRpc, type UnaryRpc } from "../rpc.ts";
import { listActions, runAction } from "./actions.ts";
import { targetOf } from "./descriptor.ts";
import { putFlight } from "./do-put.ts";
import { shakeHands } from "./handshake.ts";
import { beginPipelineCalls, type PipelineCalls, receiveFlight } from "./pipeline-calls.ts";
import { describeFlight, listFlights, readFlight, schemaOf } from "./read-flights.ts";
import { createRunningReads } from "./running-reads.ts";
import { isSqlCommand } from "./sql/commands.ts";
import { describeSql, type FlightSqlOptions, readSql, schemaOfSql, servedSql } from "./sql/flight-sql.ts";
import { createKeptStatements } from "./sql/kept-statements.ts";
import { exchangeSql, runStatement, statementIn } from "./sql/sent-statements.ts";
import { createTickets } from "./tickets.ts";

/** Options of {@link flightRpcs}. */
export interface FlightOptions {
  /** Returns the secret by which tickets are sealed; all gateways of a catalog share it. */
  secret(): string;
  /** Flight SQL. Default: it is not served. */
  readonly sql?: FlightSqlOptions | undefined;
}

/** Answers a Flight call. */
type Handle = (requests: AsyncIterable<Message>, calls: PipelineCalls, call: Call) => AsyncIterable<Message>;

/** The bodies of batches. */
const longField = [FlightDataSchema.field.dataBody] as const;

/** The rpcs of Arrow Flight. They read and write by calls of the pipeline. */
export function flightRpcs(service: Service, { secret, sql }: FlightOptions): Rpc[] {
  const { method } = FlightService;
  const tickets = createTickets(secret);
  const running = createRunningReads();
  const kept = createKeptStatements();
  const receive = receiveFlight(service);

  const describe = (descriptor: FlightDescriptor, calls: PipelineCalls) =>
    isSqlCommand(descriptor)
      ? describeSql(descriptor, calls, tickets, servedSql(sql), kept)
      : describeFlight(descriptor, calls, tickets);

  function streamed(method: DescMethod, handle: Handle): StreamRpc {
    return {
      kind: "stream",
      method,
      receive,
      async *handle(requests, call) {
        yield* handle(requests, await beginPipelineCalls(service, call), call);
      },
    };
  }
  const single = (
    method: UnaryRpc["method"],
    handle: (request: Message, calls: PipelineCalls) => Promise<Message>,
  ): UnaryRpc => ({
    ...{ kind: "unary", method, receive },
    handle: async (request, call) => handle(request, await beginPipelineCalls(service, call)),
  });

  return [
    // Its credentials may be in its messages.
    {
      kind: "stream",
      method: method.handshake,
      handle: (requests, call) => shakeHands(requests, call, service),
    },
    streamed(method.listFlights, async function* (requests, calls) {
      const { expression } = (await onlyRequest(requests)) as Criteria;
      yield* listFlights(expression, calls, tickets);
    }),
    single(method.getFlightInfo, (request, calls) => describe(request as FlightDescriptor, calls)),
    single(method.pollFlightInfo, async (request, calls) => {
      const info = await describe(request as FlightDescriptor, calls);
      const expirationTime = info.endpoint[0]?.expirationTime;
      return create(PollInfoSchema, { info, progress: 1, ...(expirationTime && { expirationTime }) });
    }),
    single(method.getSchema, async (request, calls) => {
      const descriptor = request as FlightDescriptor;
      const schema = isSqlCommand(descriptor)
        ? await schemaOfSql(descriptor, calls, tickets, servedSql(sql))
        : (await schemaOf(targetOf(descriptor, calls.namespacePath).query, calls)).schema;
      return create(SchemaResultSchema, { schema });
    }),
    streamed(method.doGet, async function* (requests, calls, call) {
      const ticket = (await onlyRequest(requests)) as Ticket;
      const statement = statementIn(ticket.ticket);
      if (statement !== undefined) {
        yield* runStatement(statement, calls, sql);
        return;
      }
      const content = tickets.open(ticket.ticket);
      const remove = running.add(content.id, call);
      try {
        const { rows } = content;
        yield* rows.kind === "table"
          ? readFlight(rows.query, content, calls)
          : readSql(rows, content, calls, servedSql(sql), kept);
      } finally {
        remove();
      }
    }),
    {
      ...streamed(method.doPut, async function* (requests, calls, { signal }) {
        yield await putFlight(requests, calls, signal, tickets, sql);
      }),
      longField,
    },
    {
      ...streamed(method.doExchange, (requests, calls, { signal }) =>
        exchangeSql(requests, calls, signal, sql),
      ),
      longField,
    },
    streamed(method.doAction, async function* (requests, calls) {
      yield await runAction((await onlyRequest(requests)) as Action, calls, { tickets, running, sql });
    }),
    streamed(method.listActions, async function* (requests) {
      await onlyRequest(requests);
      yield* listActions();
    }),
  ];
}
