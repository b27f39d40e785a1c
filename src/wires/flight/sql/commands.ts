import { type DescMessage, fromBinary, type MessageShape } from "@bufbuild/protobuf";
import { AnySchema } from "@bufbuild/protobuf/wkt";
import {
  type FlightDescriptor,
  FlightDescriptor_DescriptorType,
} from "../../../gen/arrow/flight/protocol/Flight_pb.ts";
import {
  CommandGetCatalogsSchema,
  CommandGetCrossReferenceSchema,
  CommandGetDbSchemasSchema,
  CommandGetExportedKeysSchema,
  CommandGetImportedKeysSchema,
  CommandGetPrimaryKeysSchema,
  CommandGetSqlInfoSchema,
  CommandGetTablesSchema,
  CommandGetTableTypesSchema,
  CommandGetXdbcTypeInfoSchema,
  CommandPreparedStatementQuerySchema,
  CommandPreparedStatementUpdateSchema,
  CommandStatementIngestSchema,
  CommandStatementQuerySchema,
  CommandStatementUpdateSchema,
} from "../../../gen/arrow/flight/protocol/sql/FlightSql_pb.ts";
import { LanceError } from "../../../namespace/errors.ts";

const KNOWN = [
  ...[CommandStatementQuerySchema, CommandPreparedStatementQuerySchema, CommandStatementIngestSchema],
  ...[CommandStatementUpdateSchema, CommandPreparedStatementUpdateSchema, CommandGetCatalogsSchema],
  ...[CommandGetDbSchemasSchema, CommandGetTablesSchema, CommandGetTableTypesSchema],
  ...[CommandGetPrimaryKeysSchema, CommandGetSqlInfoSchema, CommandGetXdbcTypeInfoSchema],
  ...[CommandGetExportedKeysSchema, CommandGetImportedKeysSchema, CommandGetCrossReferenceSchema],
] as const;

/** A command of Flight SQL. */
export type SqlCommand = MessageShape<(typeof KNOWN)[number]>;

const BY_NAME = new Map<string, DescMessage>(KNOWN.map((schema) => [schema.typeName, schema]));

/** First byte of a google.protobuf.Any, which is what Flight SQL sends. */
const ANY_TAG = 0x0a;

/** Whether a descriptor is a command of Flight SQL. */
export function isSqlCommand({ type, cmd }: FlightDescriptor): boolean {
  return type === FlightDescriptor_DescriptorType.CMD && cmd[0] === ANY_TAG;
}

/** @throws LanceError Unsupported for an unknown command, InvalidInput for bytes that are none */
export function parseSqlCommand(bytes: Uint8Array): SqlCommand {
  const { name, value } = parseAny(bytes, "the command");
  const schema = BY_NAME.get(name);
  if (schema === undefined)
    throw new LanceError("Unsupported", `the command ${JSON.stringify(name)} of Flight SQL is not served`);
  return parseAs(schema, value, "the command") as SqlCommand;
}

/** Reads a message of a known type from an Any. @throws LanceError InvalidInput */
export function parseAnyAs<D extends DescMessage>(
  schema: D,
  bytes: Uint8Array,
  what: string,
): MessageShape<D> {
  const { name, value } = parseAny(bytes, what);
  if (name !== schema.typeName)
    throw new LanceError("InvalidInput", `${what} is a ${name}, and must be a ${schema.typeName}`);
  return parseAs(schema, value, what);
}

function parseAny(bytes: Uint8Array, what: string): { name: string; value: Uint8Array } {
  const { typeUrl, value } = parseAs(AnySchema, bytes, what);
  return { name: typeUrl.slice(typeUrl.lastIndexOf("/") + 1), value };
}

function parseAs<D extends DescMessage>(schema: D, bytes: Uint8Array, what: string): MessageShape<D> {
  try {
    return fromBinary(schema, bytes);
  } catch (cause) {
    throw new LanceError("InvalidInput", `${what} is not a valid ${schema.typeName}`, { cause });
  }
}

/** @throws LanceError Unsupported for a call that belongs to a transaction */
export function refuseTransaction({ transactionId }: { readonly transactionId?: Uint8Array }): void {
  if (transactionId !== undefined && transactionId.byteLength > 0)
    throw new LanceError("Unsupported", "transactions of Flight SQL are not served");
}
