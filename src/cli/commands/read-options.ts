import { type OptionSpec, parseInteger, parseText, UsageError } from "../../config/option-spec.ts";

/** Which state of a table is read. */
export const STATE_OPTIONS = {
  version: {
    flag: "version",
    value: "N",
    help: "The version to read; by default the newest.",
    parse: parseInteger(1, Number.MAX_SAFE_INTEGER),
  },
  branch: { flag: "branch", value: "NAME", help: "The branch to read; by default main.", parse: parseText },
} as const satisfies Record<string, OptionSpec>;

/** Which rows and columns are read. */
export const ROW_OPTIONS = {
  filter: {
    flag: "filter",
    value: "SQL",
    help: "A condition for the rows, such as \"id > 5 AND name LIKE 'a%'\".",
    parse: parseText,
  },
  columns: {
    flag: "columns",
    value: "A,B",
    help: "The columns to read, with commas between them; by default all.",
    parse: (text: string) => parseText(text).split(","),
  },
} as const satisfies Record<string, OptionSpec>;

/** Numbers as a JSON array. */
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
