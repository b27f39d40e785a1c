import type { OptionTable } from "../../config/option-spec.ts";
import { parseInteger, parseText } from "../../config/parsers.ts";
import { catalogCommand } from "./catalog-command.ts";
import { parsePath } from "./operands.ts";
import { parseNumbers, ROW_OPTIONS, STATE_OPTIONS } from "./read-options.ts";
import { textTable } from "./text-table.ts";

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
  ...STATE_OPTIONS,
} as const satisfies OptionTable;

/** Number of characters to which cells are truncated for people. */
const CELL_CHARACTERS = 60;

/** `lance-gateway query`: prints rows of a table, as a table or, with `--json`, as a JSON object per line. */
export const query = catalogCommand({
  operands: "<TABLE>",
  options: OPTIONS,
  async run({ namespace, operands: [path = ""], options, signal, print }) {
    const { filter, columns, limit, offset, vector, vectorColumn, text, version, branch } = options;
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
    const table: string[][] = [];
    for await (const batch of result) {
      if (table.length === 0) table.push(batch.schema.names.map(String));
      for (const row of batch) {
        const record = (row as { toJSON(): Record<string, unknown> }).toJSON();
        if (options.json) await print(`${jsonText(record)}\n`);
        else table.push(Object.values(record).map(cellText));
      }
    }
    if (!options.json && table.length > 0) await print(textTable(table));
  },
});

function cellText(value: unknown): string {
  const text = typeof value === "string" ? value : jsonText(value);
  const line = text.replaceAll(/[\p{Cc}\u2028\u2029]/gu, " ");
  return line.length <= CELL_CHARACTERS ? line : `${line.slice(0, CELL_CHARACTERS - 1)}…`;
}

/** Returns JSON with 64-bit integers as digits and bytes as base64. */
function jsonText(value: unknown): string {
  if (typeof value === "bigint") return String(value);
  if (value === null || typeof value !== "object") return JSON.stringify(value) ?? "null";
  if (value instanceof Uint8Array) return JSON.stringify(Buffer.from(value).toString("base64"));
  if (value instanceof Date) return JSON.stringify(value);
  const plain = "toJSON" in value && typeof value.toJSON === "function" ? (value.toJSON() as unknown) : value;
  if (typeof plain !== "object" || plain === null) return jsonText(plain);
  if (Symbol.iterator in plain) return `[${Array.from(plain as Iterable<unknown>, jsonText).join(",")}]`;
  const members = Object.entries(plain).map(([name, item]) => `${JSON.stringify(name)}:${jsonText(item)}`);
  return `{${members.join(",")}}`;
}
