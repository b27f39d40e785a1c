import { create, toBinary } from "@bufbuild/protobuf";
import { AnySchema, anyPack } from "@bufbuild/protobuf/wkt";
import {
  ActionClosePreparedStatementRequestSchema,
  ActionCreatePreparedStatementRequestSchema,
  ActionCreatePreparedStatementResultSchema,
} from "../../../gen/arrow/flight/protocol/sql/FlightSql_pb.ts";
import { LanceError } from "../../../namespace/errors.ts";
import type { PipelineCalls } from "../pipeline-calls.ts";
import { databaseIn, type Statement, type TicketContent, type Tickets } from "../tickets.ts";
import { parseAnyAs, refuseTransaction } from "./commands.ts";
import { requireOwner, type SqlRunner, sqlCallerOf } from "./statements.ts";

/**
 * Checks a statement, and returns its handle. The handle is the sealed statement itself, so that every gateway with the secret knows it, and nothing is kept.
 */
export async function createPrepared(
  body: Uint8Array,
  calls: PipelineCalls,
  tickets: Tickets,
  runner: SqlRunner,
): Promise<Uint8Array> {
  const request = parseAnyAs(ActionCreatePreparedStatementRequestSchema, body, "the body");
  refuseTransaction(request);
  const statement: Statement = { text: request.query, namespacePath: calls.namespacePath };
  const caller = await sqlCallerOf(calls);
  const { schema, parameters, isUpdate } = await runner.describe(statement, caller);
  const rows = { kind: "prepared", statement } as const;
  const { ticket } = tickets.issue(rows, caller.key, databaseIn(calls.headers));
  const result = create(ActionCreatePreparedStatementResultSchema, {
    preparedStatementHandle: ticket.ticket,
    // JDBC tells an update by a result without columns.
    datasetSchema: isUpdate ? new Uint8Array() : schema,
    parameterSchema: parameters,
    isUpdate,
  });
  return toBinary(AnySchema, anyPack(ActionCreatePreparedStatementResultSchema, result));
}

/** Closes a prepared statement, of which nothing is kept. */
export async function closePrepared(
  body: Uint8Array,
  calls: PipelineCalls,
  tickets: Tickets,
): Promise<Uint8Array> {
  const request = parseAnyAs(ActionClosePreparedStatementRequestSchema, body, "the body");
  const { owner: heldBy } = openHandle(request.preparedStatementHandle, tickets);
  await requireOwner(calls, { heldBy });
  return new Uint8Array();
}

/** @throws LanceError InvalidInput for bytes that are not the handle of a prepared statement */
export function openHandle(
  handle: Uint8Array,
  tickets: Tickets,
): TicketContent & { readonly statement: Statement } {
  const content = tickets.open(handle);
  if (content.rows.kind !== "prepared")
    throw new LanceError("InvalidInput", "the handle is not that of a prepared statement");
  return { ...content, statement: content.rows.statement };
}
