import { type OptionSpec, type OptionTable, UsageError } from "../../config/option-spec.ts";
import { parseInteger, parseText } from "../../config/parsers.ts";

/** Branch to work on. */
export const BRANCH_OPTION = {
  flag: "branch",
  value: "NAME",
  help: "Branch of the table. Default: main.",
  parse: parseText,
} as const satisfies OptionSpec;

/** Options for the state of a table to read. */
export const STATE_OPTIONS = {
  version: {
    flag: "version",
    value: "N",
    help: "Version to read. Default: the newest.",
    parse: parseInteger(1, Number.MAX_SAFE_INTEGER),
  },
  branch: BRANCH_OPTION,
} as const satisfies OptionTable;

/** Options for the rows and columns to read. */
export const ROW_OPTIONS = {
  filter: {
    flag: "filter",
    value: "SQL",
    help: "Condition for the rows, such as \"id > 5 AND name LIKE 'a%'\".",
    parse: parseText,
  },
  columns: {
    flag: "columns",
    value: "A,B",
    help: "Columns to read, separated by commas. Default: all.",
    parse: (text: string) => parseText(text).split(","),
  },
} as const satisfies OptionTable;

/** Parses numbers from a JSON array. */
export function parseNumbers(text: string): readonly number[] {
  const problem = new UsageError("must be a JSON array of numbers such as [0.5,1]");
  try {
    const numbers: unknown = JSON.parse(text);
    if (Array.isArray(numbers) && numbers.every((item) => typeof item === "number")) return numbers;
  } catch {
    throw problem;
  }
  throw problem;
}
