import type { DataType, RecordBatch, Schema } from "apache-arrow";
import { LanceError } from "../../namespace/errors.ts";
import { isJsonObject } from "../../runtime/json.ts";
import { toIpcStream } from "../arrow-input.ts";
import { batchOf } from "../batches.ts";
import { fieldsNamed, readColumn, valueOfJson } from "./fit.ts";
import { jsonOfValue } from "./json-of-value.ts";
import { type Shape, typeOfShape, widened } from "./json-types.ts";

type Arrow = typeof import("apache-arrow");
type Row = Readonly<Record<string, unknown>>;

/** Most rows, and characters, that are converted at a time. */
const BATCH_ROWS = 8192;
const BATCH_CHARACTERS = 4 * 1024 * 1024;
/** Longest line in characters: a line is in memory as a whole. */
const LONGEST_LINE = 64 * 1024 * 1024;
/** Finds lines with numbers whose text may not be that of a number of 64 bits: long ones, and those that it writes with an exponent. */
const LONG_NUMBER = /\d[\d.]{15}|\.0{6}/;

/**
 * Converts lines with a JSON object each to an Arrow IPC stream. Without a schema it reads the text twice: all values of
 * a column decide about its type.
 *
 * @param open returns the text from its beginning, cut anywhere.
 * @param schema schema of the table to which the rows go.
 * @throws LanceError InvalidInput for text that is something else, and for values that the schema does not have.
 */
export async function* jsonLinesToArrow(
  open: () => AsyncIterable<string>,
  schema?: Schema,
): AsyncIterable<Uint8Array> {
  const arrow = await import("apache-arrow");
  const found = schema ?? (await schemaOf(arrow, open()));
  async function* batches(): AsyncIterable<RecordBatch> {
    let known = new Set<string>();
    let target: Schema | undefined;
    let next = 1;
    for await (const rows of batchesOf(open())) {
      const names = new Set(rows.flatMap((row) => Object.keys(row)));
      // Rows for a table may leave columns out, but all batches of a stream have the same columns.
      if (target === undefined) {
        known = schema === undefined ? new Set(found.names.map(String)) : names;
        target = new arrow.Schema(fieldsNamed(found, [...known]));
      }
      const late = [...names].find((name) => !known.has(name));
      if (late !== undefined) target = refuseLate(late);
      const columns = target.fields.map(({ name, type }) =>
        readColumn(
          name,
          valueFor(arrow, type),
          rows.map((row) => row[name]),
          next,
        ),
      );
      yield batchOf(arrow, target, columns, next);
      next += rows.length;
    }
    if (target === undefined) yield batchOf(arrow, found, []);
  }
  yield* toIpcStream(batches());
}

function refuseLate(name: string): never {
  throw new LanceError(
    "InvalidInput",
    `column ${JSON.stringify(name)} begins after the first ${BATCH_ROWS} rows`,
  );
}

/** Values of several kinds are texts of JSON. */
function valueFor(arrow: Arrow, type: DataType): (value: unknown) => unknown {
  const read = valueOfJson(arrow, type);
  if (!arrow.DataType.isUtf8(type)) return read;
  return (value) =>
    typeof value === "string" || value === null || value === undefined ? read(value) : jsonOfValue(value);
}

async function schemaOf(arrow: Arrow, text: AsyncIterable<string>): Promise<Schema> {
  const shapes = new Map<string, Shape>();
  for await (const rows of batchesOf(text)) {
    for (const row of rows) {
      for (const [name, value] of Object.entries(row)) shapes.set(name, widened(shapes.get(name), value));
    }
  }
  if (shapes.size === 0) throw new LanceError("InvalidInput", "no schema can be guessed without rows");
  return new arrow.Schema(
    [...shapes].map(([name, shape]) => new arrow.Field(name, typeOfShape(arrow, shape), true)),
  );
}

async function* batchesOf(text: AsyncIterable<string>): AsyncIterable<Row[]> {
  let rows: Row[] = [];
  let characters = 0;
  let number = 0;
  for await (const line of linesOf(text)) {
    number += 1;
    if (line.trim() === "") continue;
    rows.push(rowOf(line, number));
    characters += line.length;
    if (rows.length < BATCH_ROWS && characters < BATCH_CHARACTERS) continue;
    yield rows;
    rows = [];
    characters = 0;
  }
  if (rows.length > 0) yield rows;
}

async function* linesOf(text: AsyncIterable<string>): AsyncIterable<string> {
  let rest = "";
  for await (const piece of text) {
    const lines = (rest + piece).split("\n");
    rest = lines.pop() ?? "";
    if (rest.length > LONGEST_LINE) throw new LanceError("InvalidInput", "a line is longer than 64 MiB");
    yield* lines;
  }
  yield rest;
}

function rowOf(line: string, number: number): Row {
  let row: unknown;
  try {
    row = JSON.parse(line, LONG_NUMBER.test(line) ? keepDigits : undefined);
  } catch (cause) {
    throw new LanceError("InvalidInput", `line ${number} is not JSON: ${(cause as Error).message}`, {
      cause,
    });
  }
  if (isJsonObject(row)) return row;
  throw new LanceError("InvalidInput", `line ${number} is not an object`);
}

/** Keeps the digits of numbers that a number would round, of integers as bigint. */
function keepDigits(_key: string, value: unknown, context?: { readonly source?: string }): unknown {
  const source = context?.source;
  if (typeof value !== "number" || Number.isSafeInteger(value) || source === undefined) return value;
  if (/^-?\d+$/.test(source)) return BigInt(source);
  return String(value) === source ? value : JSON.rawJSON(source);
}
