import { LanceError } from "../../../namespace/errors.ts";
import {
  bytes,
  type Column,
  int32,
  type Row,
  schemaMessage,
  streamOfRows,
  text,
  uint8,
} from "./answer-rows.ts";
import { type CatalogView, schemaRows, TABLE_TYPE, tableRows, VIEW_TYPE } from "./catalog-answers.ts";
import type { SqlCommand } from "./commands.ts";
import { infoSchema, infoStream, type ServerFacts, TYPE_COLUMNS, typeRows } from "./sql-info.ts";

const CATALOG: readonly Column[] = [text("catalog_name")];
const SCHEMAS: readonly Column[] = [text("catalog_name", true), text("db_schema_name")];
const TABLES: readonly Column[] = [
  ...[text("catalog_name", true), text("db_schema_name", true), text("table_name"), text("table_type")],
];
const TABLES_WITH_SCHEMAS: readonly Column[] = [...TABLES, bytes("table_schema")];
const TABLE_TYPES: readonly Column[] = [text("table_type")];
const PRIMARY_KEYS: readonly Column[] = [
  ...[text("catalog_name", true), text("db_schema_name", true), text("table_name"), text("column_name")],
  ...[text("key_name", true), int32("key_sequence")],
];

const FOREIGN_KEYS: readonly Column[] = [
  ...[text("pk_catalog_name", true), text("pk_db_schema_name", true), text("pk_table_name")],
  ...[text("pk_column_name"), text("fk_catalog_name", true), text("fk_db_schema_name", true)],
  ...[text("fk_table_name"), text("fk_column_name"), int32("key_sequence")],
  ...[text("fk_key_name", true), text("pk_key_name", true), uint8("update_rule"), uint8("delete_rule")],
];

/** Answer to a command about the catalog. */
interface Answer {
  readonly columns: readonly Column[];
  rows(view: CatalogView): AsyncIterable<Row> | Iterable<Row>;
}

/** @throws LanceError InvalidInput for a command that is not about the catalog */
function answerTo(command: SqlCommand): Answer {
  switch (command.$typeName) {
    case "arrow.flight.protocol.sql.CommandGetCatalogs":
      return { columns: CATALOG, rows: ({ name }) => [[name]] };
    case "arrow.flight.protocol.sql.CommandGetDbSchemas":
      return { columns: SCHEMAS, rows: (view) => schemaRows(command, view) };
    case "arrow.flight.protocol.sql.CommandGetTables":
      return {
        columns: command.includeSchema ? TABLES_WITH_SCHEMAS : TABLES,
        rows: (view) => tableRows(command, view),
      };
    case "arrow.flight.protocol.sql.CommandGetTableTypes":
      return { columns: TABLE_TYPES, rows: () => [[TABLE_TYPE], [VIEW_TYPE]] };
    case "arrow.flight.protocol.sql.CommandGetPrimaryKeys":
      // Tables have no keys that a catalog enforces.
      return { columns: PRIMARY_KEYS, rows: () => [] };
    case "arrow.flight.protocol.sql.CommandGetExportedKeys":
    case "arrow.flight.protocol.sql.CommandGetImportedKeys":
    case "arrow.flight.protocol.sql.CommandGetCrossReference":
      return { columns: FOREIGN_KEYS, rows: () => [] };
    case "arrow.flight.protocol.sql.CommandGetXdbcTypeInfo":
      return { columns: TYPE_COLUMNS, rows: () => typeRows(command.dataType) };
    default:
      throw new LanceError("InvalidInput", `the command ${command.$typeName} is not one of reads`);
  }
}

/** Returns the encapsulated schema message of an answer. */
export function answerSchema(command: SqlCommand): Promise<Uint8Array> {
  if (command.$typeName === "arrow.flight.protocol.sql.CommandGetSqlInfo") return infoSchema();
  return schemaMessage(answerTo(command).columns);
}

/** Yields an answer as an Arrow IPC stream. */
export async function* answerStream(
  command: SqlCommand,
  view: CatalogView,
  server: ServerFacts,
): AsyncIterable<Uint8Array> {
  if (command.$typeName === "arrow.flight.protocol.sql.CommandGetSqlInfo") {
    yield await infoStream(command.info, server);
    return;
  }
  const { columns, rows } = answerTo(command);
  yield* streamOfRows(columns, rows(view));
}
