import { toCsv } from "../../../arrow/rows/csv-rows.ts";
import { toJsonRows } from "../../../arrow/rows/json-rows.ts";
import { type OptionTable, UsageError } from "../../../config/option-spec.ts";
import { parseChoice, parseSwitch } from "../../../config/parsers.ts";
import { TAB } from "../../files/formats.ts";
import { toRecords, toTable } from "./row-table.ts";

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
