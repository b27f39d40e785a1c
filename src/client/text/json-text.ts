import { NumberText } from "../../arrow/rows/json-text.ts";
import { LanceError } from "../../namespace/errors.ts";
import { BATCH_CHARACTERS, BATCH_ROWS, type RowBatch } from "./row-batch.ts";

/** A value of JSON: numbers with their digits, objects with their members in order. */
export type JsonValue = null | boolean | string | NumberText | readonly JsonValue[] | JsonObject;
export type JsonObject = ReadonlyMap<string, JsonValue>;

/** Deepest nesting of lists and objects. */
const MOST_LEVELS = 100;

/** A text that is not JSON. */
export class JsonError extends Error {
  /** Index of the character at which it is not. */
  readonly at: number;

  constructor(message: string, at: number) {
    super(message);
    this.at = at;
  }
}

/**
 * Parses JSON and keeps all of it.
 *
 * @throws JsonError for other texts, and for what would be lost: a second member of the same name, and halves of surrogate pairs.
 */
export function parseJson(text: string): JsonValue {
  return new Parser(text).whole();
}

const SPACES: ReadonlySet<number> = new Set([0x20, 0x09, 0x0d, 0x0a]);
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?/y;
const WORD = /true|false|null/y;
// biome-ignore lint/suspicious/noControlCharactersInRegex: JSON writes them with an escape
const ESCAPED = /[\\\u0000-\u001f]/;
const WORDS: Readonly<Record<string, boolean | null>> = { true: true, false: false, null: null };

class Parser {
  private readonly text: string;
  private at = 0;

  constructor(text: string) {
    this.text = text;
  }

  whole(): JsonValue {
    const value = this.value(0);
    this.space();
    if (this.at < this.text.length) this.fail("the line goes on after its value");
    return value;
  }

  private value(level: number): JsonValue {
    this.space();
    const { text, at } = this;
    switch (text[at]) {
      case '"':
        return this.string();
      case "{":
      case "[":
        if (level === MOST_LEVELS) this.fail(`more than ${MOST_LEVELS} levels`);
        this.at += 1;
        return text[at] === "{" ? this.members(level + 1) : this.items(level + 1);
    }
    const number = this.match(NUMBER);
    if (number !== "") return new NumberText(number);
    const word = this.match(WORD);
    if (word === "") this.fail(at < text.length ? "this is not JSON" : "the line ends within a value");
    return WORDS[word] as boolean | null;
  }

  private members(level: number): JsonObject {
    const members = new Map<string, JsonValue>();
    if (this.takes("}")) return members;
    for (;;) {
      this.space();
      const { at } = this;
      if (this.text[at] !== '"') this.fail("a member needs a name in quotes");
      const name = this.string();
      if (members.has(name)) throw new JsonError(`the member ${JSON.stringify(name)} occurs twice`, at);
      if (!this.takes(":")) this.fail("a colon is missing");
      members.set(name, this.value(level));
      if (this.takes("}")) return members;
      if (!this.takes(",")) this.fail("a comma or } is missing");
    }
  }

  private items(level: number): readonly JsonValue[] {
    const items: JsonValue[] = [];
    if (this.takes("]")) return items;
    for (;;) {
      items.push(this.value(level));
      if (this.takes("]")) return items;
      if (!this.takes(",")) this.fail("a comma or ] is missing");
    }
  }

  private string(): string {
    const { text, at: start } = this;
    let end = text.indexOf('"', start + 1);
    while (end > 0 && isEscaped(text, end)) end = text.indexOf('"', end + 1);
    if (end < 0) this.fail("a quote is missing at the end of this text");
    this.at = end + 1;
    const content = text.slice(start + 1, end);
    if (!ESCAPED.test(content)) return content;
    let value: string;
    try {
      value = JSON.parse(text.slice(start, end + 1)) as string;
    } catch {
      throw new JsonError("this text has an unknown escape or a control character", start);
    }
    if (!value.isWellFormed()) throw new JsonError("this text has half of a surrogate pair", start);
    return value;
  }

  private takes(character: string): boolean {
    this.space();
    const isNext = this.text[this.at] === character;
    if (isNext) this.at += 1;
    return isNext;
  }

  private space(): void {
    while (SPACES.has(this.text.charCodeAt(this.at))) this.at += 1;
  }

  private match(pattern: RegExp): string {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text)?.[0] ?? "";
    this.at += found.length;
    return found;
  }

  private fail(message: string): never {
    throw new JsonError(message, this.at);
  }
}

/** Whether an odd number of backslashes precedes an index. */
function isEscaped(text: string, at: number): boolean {
  let before = at;
  while (text[before - 1] === "\\") before -= 1;
  return (at - before) % 2 === 1;
}

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
