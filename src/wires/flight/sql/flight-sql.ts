import { create, type Message } from "@bufbuild/protobuf";
import {
  type FlightDescriptor,
  type FlightInfo,
  FlightInfoSchema,
} from "../../../gen/arrow/flight/protocol/Flight_pb.ts";
import { LanceError } from "../../../namespace/errors.ts";
import { flightData } from "../flight-data.ts";
import type { PipelineCalls, Presented } from "../pipeline-calls.ts";
import { databaseIn, type Statement, type TicketContent, type TicketRows, type Tickets } from "../tickets.ts";
import { answerSchema, answerStream } from "./answers.ts";
import { parseSqlCommand, refuseTransaction } from "./commands.ts";
import { openHandle } from "./prepared.ts";
import type { ServerFacts } from "./sql-info.ts";
import {
  catalogOf,
  type DescribedStatement,
  type KeptStatements,
  requireOwner,
  type SqlRunner,
  sqlCallerOf,
} from "./statements.ts";

/** Options of Flight SQL. */
export interface FlightSqlOptions {
  readonly runner: SqlRunner;
  /** Returns facts about the gateway as they are now. */
  facts(): ServerFacts;
}

/** @throws LanceError Unsupported if SQL is not served */
export function servedSql(sql: FlightSqlOptions | undefined): FlightSqlOptions {
  if (sql === undefined) throw new LanceError("Unsupported", "Flight SQL is not served");
  return sql;
}

/** Rows that a command reads. */
interface Described {
  readonly schema: Uint8Array;
  readonly rows: TicketRows;
  readonly owner: string;
  readonly database: TicketContent["database"];
  /** The statement that has the rows. Default: a command about the catalog has them. */
  readonly statement?: DescribedStatement;
}

/** Describes the rows of a command, and makes the ticket that reads them. */
export async function describeSql(
  descriptor: FlightDescriptor,
  calls: PipelineCalls,
  tickets: Tickets,
  options: FlightSqlOptions,
  kept: KeptStatements,
): Promise<FlightInfo> {
  const { schema, rows, owner, database, statement } = await described(descriptor, calls, tickets, options);
  const ticket = tickets.issue(rows, owner, database);
  const endpoint = [ticket];
  if (statement !== undefined && rows.kind === "statement")
    kept.keep(ticket.id, owner, statement, rows.statement.text.length);
  // Parameters decide about types, which clients compare with those of the rows.
  const isKnown = rows.kind !== "statement" || rows.statement.parameters === undefined;
  return create(FlightInfoSchema, {
    ...{
      schema: isKnown ? schema : new Uint8Array(),
      flightDescriptor: descriptor,
      endpoint,
      totalRecords: -1n,
      totalBytes: -1n,
    },
    ordered: true,
  });
}

/** Returns the encapsulated schema message of a command's rows. */
export async function schemaOfSql(
  descriptor: FlightDescriptor,
  calls: PipelineCalls,
  tickets: Tickets,
  options: FlightSqlOptions,
): Promise<Uint8Array> {
  return (await described(descriptor, calls, tickets, options)).schema;
}

async function described(
  { cmd }: FlightDescriptor,
  calls: PipelineCalls,
  tickets: Tickets,
  { runner }: FlightSqlOptions,
): Promise<Described> {
  const command = parseSqlCommand(cmd);
  const { namespacePath } = calls;
  switch (command.$typeName) {
    case "arrow.flight.protocol.sql.CommandStatementQuery":
      refuseTransaction(command);
      return describeStatement({ text: command.query, namespacePath }, calls, runner);
    case "arrow.flight.protocol.sql.CommandPreparedStatementQuery": {
      const { statement, owner: heldBy, database } = openHandle(command.preparedStatementHandle, tickets);
      return describeStatement(statement, calls, runner, { heldBy, database });
    }
    default: {
      const owner = await calls.owner();
      const rows = { kind: "metadata", command: cmd, namespacePath } as const;
      return { schema: await answerSchema(command), rows, owner, database: databaseIn(calls.headers) };
    }
  }
}

async function describeStatement(
  statement: Statement,
  calls: PipelineCalls,
  runner: SqlRunner,
  presented: Presented = {},
): Promise<Described> {
  const caller = await sqlCallerOf(calls, presented);
  const found = await runner.describe(statement, caller);
  const database = presented.database ?? databaseIn(calls.headers);
  const rows = { kind: "statement", statement } as const;
  return { schema: found.schema, rows, owner: caller.key, database, statement: found };
}

/** Reads the rows of a ticket of Flight SQL, as the caller who presents it and must be its owner. */
export async function* readSql(
  rows: Exclude<TicketRows, { kind: "table" }>,
  { id, owner: heldBy, database }: TicketContent,
  calls: PipelineCalls,
  { runner, facts }: FlightSqlOptions,
  kept: KeptStatements,
): AsyncIterable<Message> {
  const presented = { heldBy, database };
  switch (rows.kind) {
    case "statement": {
      // A ticket that is read twice, by a client that tries again, changes the tables once.
      const caller = await sqlCallerOf(calls, { ...presented, idempotencyKey: id });
      const statement = kept.take(id, caller.key) ?? (await runner.describe(rows.statement, caller));
      yield* flightData(statement.run(caller, rows.statement.parameters));
      return;
    }
    case "metadata": {
      await requireOwner(calls, presented);
      const name = catalogOf({ ...calls.headers, ...database });
      const view = { calls, presented, name, namespacePath: rows.namespacePath };
      yield* flightData(answerStream(parseSqlCommand(rows.command), view, facts()));
      return;
    }
    case "prepared":
      throw new LanceError("InvalidInput", "the handle of a prepared statement is not a ticket");
  }
}
