import {
  Field,
  Int32,
  LargeBinary,
  Schema,
  Struct,
  Table,
  tableToIPC,
  Utf8,
  vectorFromArray,
} from "apache-arrow";

/** A row of the tables in tests of blobs. */
export interface BlobRow {
  readonly id: number;
  /** The bytes, or the URI of a file that has them. */
  readonly blob: Uint8Array | string | null;
}

const PAYLOAD = new Struct([new Field("data", new LargeBinary(), true), new Field("uri", new Utf8(), true)]);

/** The schema of a table with a blob column, as LanceDB's clients declare it. */
const SCHEMA = new Schema([
  new Field("id", new Int32(), true),
  new Field("blob", PAYLOAD, true, new Map([["ARROW:extension:name", "lance.blob.v2"]])),
]);

/** Returns rows as an Arrow IPC stream. */
export function blobStream(rows: readonly BlobRow[]): Uint8Array {
  const values = rows.map(({ blob }) => {
    if (blob === null) return null;
    return typeof blob === "string" ? { data: null, uri: blob } : { data: blob, uri: null };
  });
  const columns = {
    id: vectorFromArray(
      rows.map(({ id }) => id),
      new Int32(),
    ),
    blob: vectorFromArray(values, PAYLOAD),
  };
  return tableToIPC(new Table(SCHEMA, columns), "stream");
}

/** Returns bytes that differ from place to place. */
export function patternBytes(size: number): Uint8Array {
  return new Uint8Array(size).map((_, at) => at * 31 + (at >> 8));
}
