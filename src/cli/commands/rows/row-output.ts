import stringWidth from "string-width";
import { slicesOf, toCsv } from "../../../arrow/rows/csv-rows.ts";
import { toJsonRows } from "../../../arrow/rows/json-rows.ts";
import { textOfValue } from "../../../arrow/rows/row-texts.ts";
import { type OptionTable, UsageError } from "../../../config/option-spec.ts";
import { parseChoice, parseSwitch } from "../../../config/parsers.ts";
import { TAB } from "../../files/formats.ts";
import { cleaned, fitsWidth, tableLines, terminalWidth } from "../text-table.ts";

/** Forms of the output. */
const FORMATS = ["table", "csv", "tsv", "jsonl"] as const;

/** Options that choose the form of printed rows. */
export const OUTPUT_OPTIONS = {
  format: {
    flag: "format",
    value: "FORMAT",
    help: "Output: a table, CSV, tabs (tsv), or a JSON object in each line (jsonl). Default: table, or jsonl with --json.",
    common: "Output: table, csv, tsv or jsonl. Default: table.",
    parse: parseChoice(FORMATS),
  },
  expanded: {
    flag: "expanded",
    help: "Print each row as a list, with a line for each column. A terminal gets this form if the columns do not fit side by side, unless --format table chooses the other.",
    common: "Print each row as a list, a line for each column.",
    fallback: "false",
    parse: parseSwitch,
  },
} as const satisfies OptionTable;

type Print = (answer: AsyncIterable<Uint8Array>) => AsyncIterable<string | Uint8Array>;

/** How rows are printed, by format. */
const PRINTERS: Readonly<Record<(typeof FORMATS)[number], Print>> = {
  csv: toCsv,
  tsv: (answer) => toCsv(answer, TAB),
  jsonl: (answer) => toJsonRows(answer, "lines"),
  table: (answer) => toTable(answer, false),
};

/** Where rows go, and in which form. */
export interface Output {
  /** Default: a table, or lines of JSON with `json`. */
  readonly format?: (typeof FORMATS)[number] | undefined;
  /** Whether each row is a list. Default: false. */
  readonly expanded?: boolean;
  /** Default: false. */
  readonly json?: boolean;
  /** File for the rows. Default: standard output. */
  readonly file?: string | undefined;
}

/** Returns how rows are printed. @throws UsageError for options that contradict each other */
export function printerOf({ format, expanded = false, json = false }: Output): Print {
  if (json && format !== undefined && format !== "jsonl")
    throw new UsageError(`--json and --format ${format} contradict each other`);
  const chosen = format ?? (json ? "jsonl" : undefined);
  if (expanded) {
    if (chosen === undefined || chosen === "table") return toRecords;
    throw new UsageError(`--expanded is for tables, and the format is ${chosen}`);
  }
  return chosen === undefined ? (answer) => toTable(answer, true) : PRINTERS[chosen];
}

/** Number of characters to which a terminal's cells are cut. */
const CELL_CHARACTERS = 60;

/** Yields the rows of an answer as a table. @param mayExpand whether rows that do not fit a terminal become lists */
async function* toTable(answer: AsyncIterable<Uint8Array>, mayExpand: boolean): AsyncIterable<string> {
  const slices = slicesOf(answer)[Symbol.asyncIterator]();
  const first = await slices.next();
  if (first.done) return;
  const { names } = first.value;
  const rest = { [Symbol.asyncIterator]: () => slices };
  if (mayExpand && !fitsWidth(names.length)) yield* recordsOf(rest);
  else yield* tableLines(cellsOf(names, rest));
}

/** Yields the rows of an answer as lists, with a line for each column. */
async function* toRecords(answer: AsyncIterable<Uint8Array>): AsyncIterable<string> {
  yield* recordsOf(slicesOf(answer));
}

type Slices = ReturnType<typeof slicesOf>;

async function* cellsOf(names: readonly string[], slices: Slices): AsyncIterable<readonly string[]> {
  yield names;
  for await (const { rows } of slices) for (const row of rows) yield names.map((name) => cellText(row[name]));
}

async function* recordsOf(slices: Slices): AsyncIterable<string> {
  let number = 0;
  for await (const { names, rows } of slices) {
    const width = Math.max(0, ...names.map((name) => stringWidth(cleaned(name))));
    const line = (name: string, value: unknown) => {
      const shown = cleaned(name);
      return `${shown}${" ".repeat(width - stringWidth(shown))}  ${cleaned(valueText(value))}`.trimEnd();
    };
    const texts = rows.map((row) => {
      number++;
      return `-- row ${number}\n${names.map((name) => `${line(name, row[name])}\n`).join("")}`;
    });
    if (texts.length > 0) yield texts.join("");
  }
}

const TIME = /^((?:\d{4}|[-+]\d{6,})-\d\d-\d\d)T(\d\d:\d\d:\d\d(?:\.\d+)?)(Z?)$/;

function valueText(value: unknown): string {
  return textOfValue(value).replace(TIME, (_, date, time, zone) => `${date} ${time}${zone && " UTC"}`);
}

/** Returns a value for a table; only a terminal, which is narrow, has it cut. */
function cellText(value: unknown): string {
  const text = valueText(value);
  if (terminalWidth() === undefined || text.length <= CELL_CHARACTERS) return text;
  return `${text.slice(0, CELL_CHARACTERS - 1)}…`;
}
