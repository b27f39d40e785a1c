import { LanceError } from "../../namespace/errors.ts";
import { BATCH_CHARACTERS, BATCH_ROWS, type RowBatch } from "./row-batch.ts";

/** A cell: its text, or null for one with nothing in it, not even quotes. */
export type Cell = string | null;

/** Characters that are read before the line of names is looked at. */
const HEAD_CHARACTERS = 64 * 1024;
/** Longest row in characters: a row is in memory as a whole. */
const LONGEST_ROW = 64 * 1024 * 1024;

/**
 * Yields the rows of CSV, whose first line names its columns. An empty line is a row without a value in a text with a single column,
 * and nothing elsewhere. A text without rows has a batch without rows.
 *
 * @param text text from its beginning, cut anywhere
 * @param separator text between the cells of a row. Default: a tab if the line of names has one outside of quotes, or else a comma, a
 *   semicolon or a vertical bar, in this order
 * @throws LanceError InvalidInput for text that is not CSV, with line and column.
 */
export async function* csvBatches(
  text: AsyncIterable<string>,
  separator?: string,
): AsyncIterable<RowBatch<Cell>> {
  let buffer = "";
  let wanted = HEAD_CHARACTERS;
  let reader: RecordReader | undefined;
  let table: Columns | undefined;

  function* rowsOf(isLast: boolean): Iterable<RowBatch<Cell>> {
    reader ??= new RecordReader(separator ?? separatorOf(buffer));
    let at = 0;
    for (;;) {
      const record = reader.next(buffer, at, isLast);
      if (record === undefined) break;
      at = record.end;
      if (table === undefined) {
        if (isBlank(record)) continue;
        table = new Columns(namesOf(record));
        continue;
      }
      table.add(record);
      if (table.isFull) yield table.take();
    }
    buffer = buffer.slice(at);
    // A row that goes on is read again when there is twice as much of it.
    wanted = buffer.length * 2;
    if (buffer.length > LONGEST_ROW)
      throw new LanceError("InvalidInput", `line ${reader.line}: the row is longer than 64 MiB`);
  }

  for await (const piece of text) {
    buffer += piece;
    if (buffer.length >= wanted) yield* rowsOf(false);
  }
  yield* rowsOf(true);
  if (table === undefined) throw new LanceError("InvalidInput", "line 1, column 1: the file is empty");
  if (table.lines.length > 0 || !table.wasTaken) yield table.take();
}

/** Rows that are collected by their columns. */
class Columns {
  lines: number[] = [];
  readonly #names: readonly string[];
  #cells: Cell[][];
  #characters = 0;
  wasTaken = false;

  constructor(names: readonly string[]) {
    this.#names = names;
    this.#cells = names.map(() => []);
  }

  get isFull(): boolean {
    return this.lines.length >= BATCH_ROWS || this.#characters >= BATCH_CHARACTERS;
  }

  add(record: CsvRecord): void {
    const { cells, line, end, start } = record;
    const { length } = this.#names;
    if (isBlank(record) && length !== 1) return;
    const extra = cells.findIndex((cell, at) => at >= length && cell !== null);
    if (extra >= 0) {
      const text = `the row has ${cells.length} cells, and the first line names ${length}; texts with separators need quotes`;
      throw new LanceError("InvalidInput", `line ${line}, column ${record.columnOf(length)}: ${text}`);
    }
    for (let at = 0; at < length; at++) (this.#cells[at] as Cell[]).push(cells[at] ?? null);
    this.lines.push(line);
    this.#characters += end - start;
  }

  take(): RowBatch<Cell> {
    const batch = {
      columns: new Map(this.#names.map((name, at) => [name, this.#cells[at] as Cell[]])),
      lines: this.lines,
    };
    this.wasTaken = true;
    this.#cells = this.#names.map(() => []);
    this.lines = [];
    this.#characters = 0;
    return batch;
  }
}

/** Returns names for columns, also where the file has none, or a name twice. */
function namesOf({ cells, line, isQuoted }: CsvRecord): readonly string[] {
  if (cells.some((cell) => cell?.includes("\0")))
    throw new LanceError(
      "InvalidInput",
      `line ${line}, column 1: the names have null characters; the text may be in UTF-16: choose its encoding`,
    );
  const given = cells.map((cell, at) => (isQuoted(at) ? cell : cell?.trim()) || `column_${at + 1}`);
  const used = new Set<string>();
  return given.map((name, at) => {
    let unique = name;
    for (let number = 2; used.has(unique) || (unique !== name && given.includes(unique)); number++)
      unique = `${name}_${number}`;
    // The first column of a name has it, and others go by their number.
    used.add(given.indexOf(name) === at ? name : unique);
    return unique;
  });
}

/** Texts that may be between the cells of a row. */
const SEPARATORS = ["\t", ",", ";", "|"];

/** Only the names decide, because the cells are texts with any characters. */
function separatorOf(text: string): string {
  const [names = ""] = text
    .trimStart()
    .replaceAll(/"(?:[^"]|"")*"/g, "")
    .split(/[\r\n]/, 1);
  return SEPARATORS.find((each) => names.includes(each)) ?? ",";
}

interface CsvRecord {
  readonly cells: readonly Cell[];
  /** Line on which it begins. */
  readonly line: number;
  readonly start: number;
  readonly end: number;
  /** Returns the number of the character at which a cell begins in its line. */
  columnOf(cell: number): number;
  isQuoted(cell: number): boolean;
}

function isBlank({ cells }: CsvRecord): boolean {
  return cells.length === 1 && cells[0] === null;
}

const [QUOTE, RETURN, FEED] = [0x22, 0x0d, 0x0a];

/** Reads the records of CSV one by one, and counts its lines. */
class RecordReader {
  line = 1;
  readonly #separator: number;
  /** Whether lines end in carriage returns alone, as the first one does. */
  #endsInReturns: boolean | undefined;

  constructor(separator: string) {
    this.#separator = separator.charCodeAt(0);
  }

  /**
   * Returns the record at an index; undefined at the end of the text.
   *
   * @param isLast whether nothing follows the text; if something does, an open record is none.
   */
  next(text: string, start: number, isLast: boolean): CsvRecord | undefined {
    if (start >= text.length) return undefined;
    const { line } = this;
    const cells: Cell[] = [];
    const starts: number[] = [];
    let breaks = 0;
    let at = start;
    for (;;) {
      starts.push(at);
      if (text.charCodeAt(at) === QUOTE) {
        const end = closingQuote(text, at + 1);
        if (end < 0) {
          if (!isLast) return undefined;
          this.#fail(text, start, at, "the quote at the beginning of this cell is not closed");
        }
        const content = text.slice(at + 1, end);
        if (/[\r\n]/.test(content)) breaks += content.match(/\r\n|\r|\n/g)?.length ?? 0;
        cells.push(content.includes('"') ? content.replaceAll('""', '"') : content);
        at = end + 1;
      } else {
        const from = at;
        while (at < text.length && !this.#isEnd(text.charCodeAt(at))) at += 1;
        cells.push(at === from ? null : text.slice(from, at));
      }
      // The rest may begin with the second quote, or line feed, of a pair.
      if (at >= text.length - 1 && !isLast) return undefined;
      if (at >= text.length || !this.#isSeparator(text, at)) break;
      at += 1;
    }
    const end = this.#lineEnd(text, start, at);
    this.line += breaks + 1;
    const columnOf = (cell: number) => columnAt(text, start, starts[cell] ?? start);
    const isQuoted = (cell: number) => text.charCodeAt(starts[cell] ?? start) === QUOTE;
    return { cells, line, start, end, columnOf, isQuoted };
  }

  #isEnd(code: number): boolean {
    return code === this.#separator || code === RETURN || code === FEED;
  }

  #isSeparator(text: string, at: number): boolean {
    return text.charCodeAt(at) === this.#separator;
  }

  /** Returns the index after the end of a line. */
  #lineEnd(text: string, start: number, at: number): number {
    if (at >= text.length) return at;
    const code = text.charCodeAt(at);
    if (code === RETURN && text.charCodeAt(at + 1) === FEED) {
      this.#endsInReturns ??= false;
      return at + 2;
    }
    if (code !== RETURN && code !== FEED)
      this.#fail(text, start, at, `a quoted cell goes on after its quote; quotes in it are written twice`);
    this.#endsInReturns ??= code === RETURN;
    if (this.#endsInReturns !== (code === RETURN)) {
      const what = code === RETURN ? "a carriage return" : "a line feed";
      this.#fail(text, start, at, `${what} alone ends no line here, and needs quotes in a cell`);
    }
    return at + 1;
  }

  #fail(text: string, start: number, at: number, message: string): never {
    const before = text.slice(start, at).match(/\r\n|\r|\n/g)?.length ?? 0;
    const place = `line ${this.line + before}, column ${columnAt(text, start, at)}`;
    throw new LanceError("InvalidInput", `${place}: ${message}`);
  }
}

/** Returns the index of the quote that closes a cell; -1 without one. */
function closingQuote(text: string, from: number): number {
  for (let at = text.indexOf('"', from); at >= 0; at = text.indexOf('"', at + 2))
    if (text.charCodeAt(at + 1) !== QUOTE) return at;
  return -1;
}

function columnAt(text: string, start: number, at: number): number {
  const [last = ""] = text
    .slice(start, at)
    .split(/\r\n|\r|\n/)
    .slice(-1);
  return last.length + 1;
}
