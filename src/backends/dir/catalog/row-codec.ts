import {
  Field,
  List,
  makeBuilder,
  makeData,
  RecordBatch,
  Schema,
  Struct,
  Table,
  tableFromIPC,
  tableToIPC,
  Utf8,
} from "apache-arrow";
import type { Row } from "./row.ts";

/** The key that makes concurrent inserts of one object conflict. */
const PRIMARY_KEY = new Map([["lance-schema:unenforced-primary-key:position", "0"]]);

/** The public schema of `__manifest`, version 2. */
const SCHEMA = new Schema([
  new Field("object_id", new Utf8(), false, PRIMARY_KEY),
  new Field("object_type", new Utf8(), false),
  new Field("location", new Utf8(), true),
  new Field("metadata", new Utf8(), true),
  new Field("base_objects", new List(new Field("object_id", new Utf8(), true)), true),
]);

/** The columns that are read. */
export const ROW_COLUMNS = ["object_id", "object_type", "location", "metadata"];

/** Encodes rows as an Arrow IPC file with the schema of `__manifest`. */
export function encodeRows(rows: readonly Row[]): Buffer {
  const children = SCHEMA.fields.map((field) => {
    const builder = makeBuilder({ type: field.type, nullValues: [null] });
    for (const row of rows) builder.append(columnValue(row, field.name));
    return builder.finish().flush();
  });
  const data = makeData({ type: new Struct(SCHEMA.fields), length: rows.length, nullCount: 0, children });
  const file = tableToIPC(new Table(SCHEMA, new RecordBatch(SCHEMA, data)), "file");
  return Buffer.from(file.buffer, file.byteOffset, file.byteLength);
}

function columnValue(row: Row, column: string): string | null {
  switch (column) {
    case "object_id":
      return row.objectId;
    case "object_type":
      return row.objectType;
    case "location":
      return row.location ?? null;
    case "metadata":
      return Object.keys(row.properties).length === 0 ? null : JSON.stringify(row.properties);
    default:
      return null;
  }
}

/** Decodes the rows of one batch, an Arrow IPC file with the columns {@link ROW_COLUMNS}. */
export function* decodeRows(ipcFile: Uint8Array): Generator<Row> {
  const table = tableFromIPC(ipcFile);
  const [ids, types, locations, metadata] = ROW_COLUMNS.map((name) => table.getChild(name));
  for (let i = 0; i < table.numRows; i++) {
    yield {
      objectId: String(ids?.get(i)),
      objectType: String(types?.get(i)),
      location: locations?.get(i) ?? undefined,
      properties: parseProperties(metadata?.get(i)),
    };
  }
}

/** Other writers may keep other JSON in the column; only entries of text are properties. */
function parseProperties(json: string | null | undefined): Record<string, string> {
  if (json === null || json === undefined || json === "") return {};
  try {
    const entries = Object.entries(JSON.parse(json) as object);
    return Object.fromEntries(entries.filter(([, value]) => typeof value === "string"));
  } catch {
    return {};
  }
}
