import { create, type DescMethod, fromBinary, type Message } from "@bufbuild/protobuf";
import { END_OF_STREAM } from "../../arrow/ipc/stream.ts";
import {
  type Action,
  BasicAuthSchema,
  type Criteria,
  FlightDataSchema,
  type FlightDescriptor,
  FlightService,
  type HandshakeRequest,
  HandshakeResponseSchema,
  PollInfoSchema,
  SchemaResultSchema,
  type Ticket,
} from "../../gen/arrow/flight/protocol/Flight_pb.ts";
import { type RunSqlRequest, RunSqlResponseSchema, SqlService } from "../../gen/lance/gateway/v1/sql_pb.ts";
import type { Call } from "../../namespace/call/call.ts";
import { LanceError } from "../../namespace/errors.ts";
import type { Service } from "../../namespace/service.ts";
import { onlyRequest, type Rpc, type StreamRpc, type UnaryRpc } from "../rpc.ts";
import { listActions, runAction } from "./actions.ts";
import { targetOf } from "./descriptor.ts";
import { putFlight } from "./do-put.ts";
import { requirePassword, tokenIn } from "./headers.ts";
import { beginPipelineCalls, type PipelineCalls, receiveFlight } from "./pipeline-calls.ts";
import { createRunningReads, describeFlight, listFlights, readFlight, schemaOf } from "./read-flights.ts";
import { isSqlCommand } from "./sql/commands.ts";
import { describeSql, type FlightSqlOptions, readSql, schemaOfSql, servedSql } from "./sql/flight-sql.ts";
import { exchangeSql, runStatement, statementIn } from "./sql/sent-statements.ts";
import { createKeptStatements, type SqlRunner, sqlCallerOf } from "./sql/statements.ts";
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

/**
 * Returns the token of later calls for a key or a token that is the password of Basic, either in `authorization` or in the payload of a message. It is the
 * key or the token itself: the gateway keeps no sessions.
 */
export async function* shakeHands(
  requests: AsyncIterable<Message>,
  call: Call,
  service: Service,
): AsyncIterable<Message> {
  const inHeaders = tokenIn(call.headers);
  const token = inHeaders ?? (await tokenInPayload(requests));
  const headers = Object.assign(Object.create(null), call.headers);
  if (token !== undefined) headers["authorization"] = `Bearer ${token}`;
  const { method, certificate } = call;
  call.reception = await receiveFlight(service)?.({ method, headers, certificate });
  await beginPipelineCalls(service, call);
  if (token === undefined) return;
  if (inHeaders !== undefined) call.responseHeaders["authorization"] = `Bearer ${token}`;
  else yield create(HandshakeResponseSchema, { payload: Buffer.from(token) });
}

async function tokenInPayload(requests: AsyncIterable<Message>): Promise<string | undefined> {
  for await (const message of requests) {
    const { payload } = message as HandshakeRequest;
    if (payload.byteLength === 0) continue;
    try {
      return requirePassword(fromBinary(BasicAuthSchema, payload).password);
    } catch (cause) {
      if (cause instanceof LanceError) throw cause;
      throw new LanceError("InvalidInput", "the payload of a handshake must be BasicAuth", { cause });
    }
  }
  return undefined;
}

/** The rpcs of SQL for clients without Arrow Flight. A statement reads tables by calls of the pipeline. */
export function sqlRpcs(service: Service, { runner }: { readonly runner: SqlRunner }): Rpc[] {
  return [
    {
      kind: "stream",
      method: SqlService.method.runSql,
      receive: service.receive,
      async *handle(requests, call) {
        const { statement: text, namespacePath, explain } = (await onlyRequest(requests)) as RunSqlRequest;
        const caller = await sqlCallerOf(await beginPipelineCalls(service, call, call.protocol));
        const described = await runner.describe({ text, namespacePath }, caller);
        const result = explain ? described.explain(caller) : described.run(caller, undefined);
        for await (const data of result) yield create(RunSqlResponseSchema, { data });
        yield create(RunSqlResponseSchema, { data: END_OF_STREAM });
      },
    },
  ];
}
