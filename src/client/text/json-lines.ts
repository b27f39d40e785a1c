import { LanceError } from "../../namespace/errors.ts";
import { type JsonError, type JsonObject, type JsonValue, parseJson } from "./json-text.ts";
import { BATCH_CHARACTERS, BATCH_ROWS, type RowBatch } from "./row-batch.ts";

/** Longest line in characters: a line is in memory as a whole. */
const LONGEST_LINE = 64 * 1024 * 1024;

/**
 * Yields the rows of lines with a JSON object each. A line without anything counts as nothing.
 *
 * @param text text from its beginning, cut anywhere.
 * @throws LanceError InvalidInput for text that is something else, with line and column.
 */
export async function* jsonBatches(text: AsyncIterable<string>): AsyncIterable<RowBatch<JsonValue>> {
  let rows: JsonObject[] = [];
  let lines: number[] = [];
  let characters = 0;
  let number = 0;
  for await (const line of linesOf(text)) {
    number += 1;
    if (line.trim() === "") continue;
    rows.push(rowOf(line, number));
    lines.push(number);
    characters += line.length;
    if (rows.length < BATCH_ROWS && characters < BATCH_CHARACTERS) continue;
    yield batchOfRows(rows, lines);
    rows = [];
    lines = [];
    characters = 0;
  }
  if (rows.length > 0) yield batchOfRows(rows, lines);
}

function batchOfRows(rows: readonly JsonObject[], lines: readonly number[]): RowBatch<JsonValue> {
  const names = new Set(rows.flatMap((row) => [...row.keys()]));
  return { columns: new Map([...names].map((name) => [name, rows.map((row) => row.get(name))])), lines };
}

async function* linesOf(text: AsyncIterable<string>): AsyncIterable<string> {
  let parts: string[] = [];
  let length = 0;
  let number = 1;
  let isAfterReturn = false;
  for await (let piece of text) {
    if (isAfterReturn && piece.startsWith("\n")) piece = piece.slice(1);
    isAfterReturn = piece.endsWith("\r");
    const [first = "", ...others] = piece.split(/\r\n|\r|\n/);
    parts.push(first);
    length += first.length;
    for (const line of others) {
      yield parts.join("");
      number += 1;
      parts = [line];
      length = line.length;
    }
    if (length > LONGEST_LINE) throw new LanceError("InvalidInput", `line ${number} is longer than 64 MiB`);
  }
  yield parts.join("");
}

function rowOf(line: string, number: number): JsonObject {
  let row: JsonValue;
  try {
    row = parseJson(line);
  } catch (cause) {
    const { message, at } = cause as JsonError;
    const text = `line ${number}, column ${at + 1}: ${message}`;
    throw new LanceError("InvalidInput", text, { cause });
  }
  if (row instanceof Map) return row;
  throw new LanceError("InvalidInput", `line ${number}, column 1: this is not an object`);
}
