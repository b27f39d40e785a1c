import { type OptionSpec, type OptionTable, UsageError } from "../../../config/option-spec.ts";
import { parseInteger, parseText } from "../../../config/parsers.ts";

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
    common: "Condition, such as \"id > 5 AND name LIKE 'a%'\".",
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
    // A query with an empty vector is a scan.
    const isVector = Array.isArray(numbers) && numbers.length > 0;
    if (isVector && numbers.every((item) => typeof item === "number")) return numbers;
  } catch {
    throw problem;
  }
  throw problem;
}

/** A column that orders rows. */
export interface Ordering {
  readonly columnName: string;
  readonly ascending: boolean;
  readonly nullsFirst: boolean;
}

const ORDERING = /^((?:`(?:[^`]|``)+`|[^`\s])+)(?:\s+(asc|desc))?(?:\s+nulls\s+(first|last))?$/i;
/** Commas outside of names between backticks. */
const COMMA = /,(?=(?:[^`]*`[^`]*`)*[^`]*$)/;

/** Parses columns with their directions, as in SQL; nulls come last unless it says otherwise. */
export function parseOrder(text: string): readonly Ordering[] {
  return text.split(COMMA).map((part) => {
    const [, columnName, direction = "asc", nulls = "last"] = ORDERING.exec(part.trim()) ?? [];
    if (columnName === undefined)
      throw new UsageError(
        'must be columns such as "age desc nulls last, name"; odd names stand between backticks',
      );
    const ascending = direction.toLowerCase() === "asc";
    return { columnName, ascending, nullsFirst: /^first$/i.test(nulls) };
  });
}
