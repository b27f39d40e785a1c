import { textOfValue } from "../../client/text/row-texts.ts";
import { type OptionTable, UsageError } from "../../config/option-spec.ts";
import { parseChoice, parseInteger, parseText } from "../../config/parsers.ts";
import { slicesOf, toCsv, toJsonLines } from "../files/text.ts";
import { catalogCommand } from "./catalog-command.ts";
import { parsePath } from "./operands.ts";
import { parseNumbers, ROW_OPTIONS, STATE_OPTIONS } from "./read-options.ts";
import { createTableFormat } from "./text-table.ts";

/** Forms of the output. */
const FORMATS = ["table", "csv", "jsonl"] as const;

const OPTIONS = {
  ...ROW_OPTIONS,
  limit: {
    flag: "limit",
    value: "N",
    help: "Maximum number of rows; 0 for all.",
    fallback: "100",
    parse: parseInteger(0, Number.MAX_SAFE_INTEGER),
  },
  offset: {
    flag: "offset",
    value: "N",
    help: "Number of rows to skip.",
    fallback: "0",
    parse: parseInteger(0, Number.MAX_SAFE_INTEGER),
  },
  vector: {
    flag: "vector",
    value: "NUMBERS",
    help: "Vector whose nearest neighbours to find, such as [0.5,1].",
    parse: parseNumbers,
  },
  vectorColumn: {
    flag: "vector-column",
    value: "NAME",
    help: "Column of the vectors. Default: the only one.",
    parse: parseText,
  },
  text: {
    flag: "text",
    value: "WORDS",
    help: "Words to find in the columns with a text index.",
    parse: parseText,
  },
  format: {
    flag: "format",
    value: "FORMAT",
    help: "Output: a table, CSV, or a JSON object in each line (jsonl). Default: table, or jsonl with --json.",
    parse: parseChoice(FORMATS),
  },
  ...STATE_OPTIONS,
} as const satisfies OptionTable;

/** Number of characters to which cells are truncated for people. */
const CELL_CHARACTERS = 60;
/** Number of rows that decide about the widths of columns. */
const WIDTH_ROWS = 1_000;

/** `lance-gateway query`: prints rows of a table, as a table, as CSV or as a JSON object per line. */
export const query = catalogCommand({
  operands: "<TABLE>",
  access: "read",
  options: OPTIONS,
  async run({ namespace, operands: [path = ""], options, signal, print }) {
    const { filter, columns, limit, offset, vector, vectorColumn, text, version, branch, json } = options;
    const { format = json ? "jsonl" : "table" } = options;
    if (json && format !== "jsonl")
      throw new UsageError(`--json and --format ${format} contradict each other`);
    const result = namespace.queryTable(
      {
        id: parsePath(path),
        filter,
        columns,
        vector,
        vectorColumn,
        fullTextQuery: text,
        version,
        branch,
        k: limit === 0 ? undefined : limit,
        offset: offset === 0 ? undefined : offset,
      },
      { signal },
    );
    for await (const piece of PRINTERS[format](result.bytes())) await print(piece);
  },
});

type Print = (answer: AsyncIterable<Uint8Array>) => AsyncIterable<string | Uint8Array>;

/** How rows are printed, by format. */
const PRINTERS: Readonly<Record<(typeof FORMATS)[number], Print>> = {
  csv: toCsv,
  jsonl: toJsonLines,
  async *table(answer) {
    let format: ((rows: readonly (readonly string[])[]) => string) | undefined;
    let held: string[][] = [];
    for await (const { names, rows } of slicesOf(answer)) {
      if (format === undefined && held.length === 0) held.push([...names]);
      held.push(...rows.map((row) => names.map((name) => cellText(row[name]))));
      if (held.length <= WIDTH_ROWS) continue;
      format ??= createTableFormat(held);
      yield format(held);
      held = [];
    }
    if (held.length > 0) yield (format ?? createTableFormat(held))(held);
  },
};

const TIME = /^((?:\d{4}|[-+]\d{6,})-\d\d-\d\d)T(\d\d:\d\d:\d\d(?:\.\d+)?)(Z?)$/;

function cellText(value: unknown): string {
  const text = textOfValue(value).replace(TIME, (_, date, time, zone) => `${date} ${time}${zone && " UTC"}`);
  return text.length <= CELL_CHARACTERS ? text : `${text.slice(0, CELL_CHARACTERS - 1)}…`;
}
