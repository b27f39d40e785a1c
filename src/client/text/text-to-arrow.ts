import type { DataType, Field, RecordBatch, Schema } from "apache-arrow";
import { LanceError } from "../../namespace/errors.ts";
import { toIpcStream } from "../rows/arrow-input.ts";
import { batchOf } from "../rows/fitting.ts";
import { type Cell, csvBatches } from "./csv.ts";
import { decoded } from "./decode.ts";
import { type JsonValue, jsonBatches } from "./json-text.ts";
import { BATCH_ROWS, forEachValue, type RowBatch } from "./row-batch.ts";
import { type Shape, typeOfShape, widenedByCell, widenedByJson } from "./shapes.ts";
import { type ReadOptions, readerOfCell, readerOfJson } from "./values.ts";

type Arrow = typeof import("apache-arrow");

/** How a text is read. */
export interface TextOptions extends ReadOptions {
  readonly format: "csv" | "tsv" | "jsonl";
  /** Encoding of the text, as the WHATWG names it. Default: the one of its byte order mark, or else UTF-8. */
  readonly encoding?: string | undefined;
  /** Types of columns. Default: the narrowest that hold all their values exactly. */
  readonly types?: ReadonlyMap<string, DataType> | undefined;
  /** Whether the rows go to a table, whose columns they may leave out. Default: the schema is that of the text. */
  readonly isForTable?: boolean | undefined;
}

/** Returns the bytes of a text from its beginning. */
export type OpenText = () => AsyncIterable<Uint8Array>;

/** A format of texts; its values have a form of their own. */
interface Format {
  batches(text: AsyncIterable<string>): AsyncIterable<RowBatch<unknown>>;
  widened(shape: Shape | undefined, value: unknown): Shape;
  readerOf(arrow: Arrow, type: DataType, options: ReadOptions): (value: never) => unknown;
}

const CSV: Format = {
  batches: (text) => csvBatches(text),
  widened: (shape, value) => widenedByCell(shape, value as Cell | undefined),
  readerOf: readerOfCell,
};
const FORMATS: Readonly<Record<TextOptions["format"], Format>> = {
  csv: CSV,
  tsv: { ...CSV, batches: (text) => csvBatches(text, "\t") },
  jsonl: {
    batches: jsonBatches,
    widened: (shape, value) => widenedByJson(shape, value as JsonValue | undefined),
    readerOf: readerOfJson,
  },
};

/**
 * Finds out the schema of a text from all its values. Each type is the narrowest that holds all values of the column exactly: integers
 * of 64 bits, decimals for longer ones, floating-point numbers of 64 bits, true or false, dates, times with or without a zone,
 * vectors; and texts for everything else.
 *
 * @throws LanceError InvalidInput with line and column, for text that is not of the format, and columns whose values have no common type.
 */
export async function schemaOfText(open: OpenText, options: TextOptions): Promise<Schema> {
  const { format, encoding, types } = options;
  const { batches, widened } = FORMATS[format];
  const shapes = new Map<string, Shape | undefined>();
  for await (const batch of batches(decoded(open(), encoding))) {
    for (const name of batch.columns.keys()) {
      let shape = shapes.get(name);
      if (types?.has(name) !== true)
        forEachValue(batch, name, (value) => {
          shape = widened(shape, value);
        });
      shapes.set(name, shape);
    }
  }
  if (shapes.size === 0) throw new LanceError("InvalidInput", "cannot infer a schema without rows");
  const unknown = [...(types?.keys() ?? [])].find((name) => !shapes.has(name));
  if (unknown !== undefined)
    throw new LanceError("InvalidInput", `the file has no column ${JSON.stringify(unknown)}`);
  const arrow = await import("apache-arrow");
  const typeOf = (name: string, shape: Shape = { kind: "null" }) =>
    types?.get(name) ?? typeOfShape(arrow, shape);
  return new arrow.Schema(
    [...shapes].map(([name, shape]) => new arrow.Field(name, typeOf(name, shape), true)),
  );
}

/**
 * Returns the names of the columns in the first rows of a text; none if it has no rows.
 *
 * @throws LanceError InvalidInput with line and column, for text that is not of the format.
 */
export async function columnsOfText(open: OpenText, { format, encoding }: TextOptions): Promise<string[]> {
  for await (const { columns } of FORMATS[format].batches(decoded(open(), encoding)))
    return [...columns.keys()];
  return [];
}

/**
 * Converts a text to an Arrow IPC stream, whose values are exactly those of the text.
 *
 * @param schema schema of the text, or of the table to which the rows go; they may leave columns out
 * @throws LanceError InvalidInput with line and column, for text that is not of the format, and values that their columns do not hold.
 */
export function textToArrow(open: OpenText, schema: Schema, options: TextOptions): AsyncIterable<Uint8Array> {
  return toIpcStream(textBatches(open, schema, options));
}

/** Converts a text to batches of Arrow, as {@link textToArrow} does. */
export async function* textBatches(
  open: OpenText,
  schema: Schema,
  options: TextOptions,
): AsyncIterable<RecordBatch> {
  const { format, encoding } = options;
  const { batches, readerOf } = FORMATS[format];
  const arrow = await import("apache-arrow");
  // Rows for a table may leave columns out, but all batches of a stream have the same columns.
  let readers: readonly ReturnType<Format["readerOf"]>[] | undefined;
  let target = options.isForTable === true ? undefined : schema;
  for await (const batch of batches(decoded(open(), encoding))) {
    const names = [...batch.columns.keys()];
    // Rows without any column are rows all the same, which a batch without columns would lose.
    target ??= names.length === 0 ? schema : new arrow.Schema(fieldsNamed(schema, names));
    const known = target.names;
    const late = names.find((name) => !known.includes(name));
    if (late !== undefined) refuseLate(batch, late);
    readers ??= target.fields.map(({ type }) => readerOf(arrow, type, options));
    const columns = target.fields.map(({ name }, at) => {
      const read = readers?.[at] as ReturnType<Format["readerOf"]>;
      const values: unknown[] = [];
      forEachValue(batch, name, (value) => values.push(read(value as never)));
      return values;
    });
    yield batchOf(arrow, target, columns, (row) => `line ${batch.lines[row]}`);
  }
  if (target === undefined) yield batchOf(arrow, schema, []);
}

/** Returns the fields of a schema with names, in the order of the names. */
function fieldsNamed(schema: Schema, names: readonly string[]): Field[] {
  return names.map((name) => {
    const field = schema.fields.find((each) => each.name === name);
    if (field !== undefined) return field;
    const known = schema.names.map(String).join(", ");
    throw new LanceError("InvalidInput", `the table has no column ${JSON.stringify(name)}; it has ${known}`);
  });
}

function refuseLate(batch: RowBatch<unknown>, name: string): void {
  forEachValue(batch, name, (value) => {
    if (value !== undefined) throw new Error(`the column begins after the first ${BATCH_ROWS} rows`);
  });
}
