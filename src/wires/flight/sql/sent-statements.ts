import type { Message } from "@bufbuild/protobuf";
import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import type { CommandStatementQuery } from "../../../gen/arrow/flight/protocol/sql/FlightSql_pb.ts";
import { LanceError } from "../../../namespace/errors.ts";
import { flightData } from "../flight-data.ts";
import type { PipelineCalls } from "../pipeline-calls.ts";
import { type PutStart, readStart } from "../put-stream.ts";
import { isSqlCommand, parseSqlCommand, refuseTransaction } from "./commands.ts";
import { type FlightSqlOptions, servedSql } from "./flight-sql.ts";
import { MAX_PARAMETER_BYTES, readParameters } from "./put-sql.ts";
import { sqlCallerOf } from "./statements.ts";

/** Field of a ticket that has a command, as LanceDB's clients from 0.41 on write it. */
const COMMAND_FIELD = 2;

/**
 * Returns the statement that a client sent in place of a ticket: LanceDB's clients from 0.41 on send one by DoGet at once. Undefined for other tickets, also
 * for sealed ones, whose bytes may begin in any way.
 */
export function statementIn(ticket: Uint8Array): CommandStatementQuery | undefined {
  const reader = new BinaryReader(ticket);
  try {
    const [field, type] = reader.tag();
    if (field !== COMMAND_FIELD || type !== WireType.LengthDelimited) return undefined;
    const command = parseSqlCommand(reader.bytes());
    const isWhole = reader.pos === reader.len;
    return isWhole && command.$typeName === STATEMENT ? command : undefined;
  } catch {
    return undefined;
  }
}

const STATEMENT = "arrow.flight.protocol.sql.CommandStatementQuery";

/** Runs a statement that its call has sent, and yields its result. The tables that it reads and changes are authorized as for every other statement. */
export async function* runStatement(
  command: CommandStatementQuery,
  calls: PipelineCalls,
  sql: FlightSqlOptions | undefined,
  parameters?: Uint8Array,
): AsyncIterable<Message> {
  refuseTransaction(command);
  const statement = { text: command.query, namespacePath: calls.namespacePath };
  const caller = await sqlCallerOf(calls);
  const described = await servedSql(sql).runner.describe(statement, caller);
  yield* flightData(described.run(caller, parameters));
}

/** Serves a DoExchange: a statement with a row of parameters, as LanceDB's clients from 0.41 on send it. */
export async function* exchangeSql(
  requests: AsyncIterable<Message>,
  calls: PipelineCalls,
  signal: AbortSignal,
  sql: FlightSqlOptions | undefined,
): AsyncIterable<Message> {
  const start = await readStart(requests);
  const command = statementOf(start);
  const { rows, stream } = await readParameters(start, signal, MAX_PARAMETER_BYTES);
  if (rows !== 1)
    throw new LanceError("Unsupported", `a statement runs with one row of parameters, not with ${rows}`);
  yield* runStatement(command, calls, sql, stream);
}

function statementOf({ descriptor, options }: PutStart): CommandStatementQuery {
  const command = isSqlCommand(descriptor) ? parseSqlCommand(descriptor.cmd) : undefined;
  if (command?.$typeName !== STATEMENT || options !== undefined)
    throw new LanceError(
      "Unsupported",
      "DoExchange runs statements of Flight SQL with parameters: DoPut writes, its PutResult has the counts of a merge, and DoGet reads",
    );
  return command;
}
