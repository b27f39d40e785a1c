import {
  create,
  type DescMessage,
  fromBinary,
  type Message,
  type MessageShape,
  toBinary,
} from "@bufbuild/protobuf";
import {
  type Action,
  ActionTypeSchema,
  CancelFlightInfoRequestSchema,
  CancelFlightInfoResultSchema,
  CancelStatus,
  CloseSessionRequestSchema,
  CloseSessionResult_Status,
  CloseSessionResultSchema,
  FlightEndpointSchema,
  RenewFlightEndpointRequestSchema,
  ResultSchema,
} from "../../gen/arrow/flight/protocol/Flight_pb.ts";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import { LanceError } from "../../namespace/errors.ts";
import type { PipelineCalls } from "./pipeline-calls.ts";
import type { RunningReads } from "./read-flights.ts";
import { type FlightSqlOptions, servedSql } from "./sql/flight-sql.ts";
import { closePrepared, createPrepared } from "./sql/prepared.ts";
import { requireOwner } from "./sql/statements.ts";
import type { TicketContent, Tickets } from "./tickets.ts";

/** State that actions use. */
export interface ActionContext {
  readonly tickets: Tickets;
  readonly running: RunningReads;
  /** Runs statements in SQL. Default: it is not served. */
  readonly sql?: FlightSqlOptions | undefined;
}

/** An action: its purpose, and the function that runs it on its parameters. */
interface KnownAction {
  readonly description: string;
  /** Returns the body of its only result. */
  run(body: Uint8Array, calls: PipelineCalls, context: ActionContext): Promise<Uint8Array>;
}

const ACTIONS: Readonly<Record<string, KnownAction>> = {
  CancelFlightInfo: {
    description: "Ends the reads of a flight that run on this connection's worker.",
    async run(body, calls, { tickets, running }) {
      const { info } = parse(CancelFlightInfoRequestSchema, body);
      let ended = 0;
      for (const { ticket } of info?.endpoint ?? []) {
        const content = tickets.open(ticket?.ticket ?? NOTHING);
        await authorize(content, calls);
        ended += running.cancel(content.id);
      }
      const status = ended > 0 ? CancelStatus.CANCELLED : CancelStatus.NOT_CANCELLABLE;
      return toBinary(CancelFlightInfoResultSchema, create(CancelFlightInfoResultSchema, { status }));
    },
  },
  RenewFlightEndpoint: {
    description: "Returns an endpoint for the same rows whose ticket is valid for longer.",
    async run(body, calls, { tickets }) {
      const { endpoint } = parse(RenewFlightEndpointRequestSchema, body);
      const content = tickets.open(endpoint?.ticket?.ticket ?? NOTHING);
      await authorize(content, calls);
      return toBinary(FlightEndpointSchema, create(FlightEndpointSchema, tickets.renew(content)));
    },
  },
  CloseSession: {
    description: "Does nothing: the gateway keeps no sessions.",
    async run(body) {
      parse(CloseSessionRequestSchema, body);
      const status = CloseSessionResult_Status.CLOSED;
      return toBinary(CloseSessionResultSchema, create(CloseSessionResultSchema, { status }));
    },
  },
  CreatePreparedStatement: {
    description: "Checks a statement in SQL, and returns its handle.",
    run: (body, calls, { tickets, sql }) => createPrepared(body, calls, tickets, servedSql(sql).runner),
  },
  ClosePreparedStatement: {
    description: "Ends the use of a handle, of which nothing is kept.",
    run: (body, calls, { tickets }) => closePrepared(body, calls, tickets),
  },
};

const NOTHING = new Uint8Array();

/** Lists the actions. */
export function* listActions(): Iterable<Message> {
  for (const [type, { description }] of Object.entries(ACTIONS))
    yield create(ActionTypeSchema, { type, description });
}

/** Runs an action. @throws LanceError Unsupported for one that is not known */
export async function runAction(
  { type, body }: Action,
  calls: PipelineCalls,
  context: ActionContext,
): Promise<Message> {
  const action = Object.hasOwn(ACTIONS, type) ? ACTIONS[type] : undefined;
  if (action === undefined) {
    const known = Object.keys(ACTIONS).join(", ");
    throw new LanceError("Unsupported", `there is no action ${JSON.stringify(type)}; there are ${known}`);
  }
  return create(ResultSchema, { body: await action.run(body, calls, context) });
}

/** Finds out whether the caller owns a ticket, and for a table, whether it may still read the rows. */
async function authorize({ rows, owner: heldBy, database }: TicketContent, calls: PipelineCalls) {
  if (rows.kind !== "table") {
    await requireOwner(calls, { heldBy });
    return;
  }
  const { id, version, branch } = rows.query;
  const message = {
    id,
    ...(version !== undefined && { version }),
    ...(branch && { branch }),
    predicate: "false",
  };
  await calls.unary(LanceNamespaceService.method.countTableRows, message, { heldBy, database });
}

/** Reads the parameters of an action. @throws LanceError InvalidInput */
function parse<D extends DescMessage>(descriptor: D, body: Uint8Array): MessageShape<D> {
  try {
    return fromBinary(descriptor, body);
  } catch (cause) {
    throw new LanceError("InvalidInput", `the body is not a valid ${descriptor.typeName}`, { cause });
  }
}
