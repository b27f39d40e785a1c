import { parsePath } from "../../../client/object-path.ts";
import { type OptionTable, UsageError } from "../../../config/option-spec.ts";
import { parseInteger, parseText } from "../../../config/parsers.ts";
import { catalogCommand } from "../catalog-command.ts";
import { BRANCH_OPTION, parseNumbers, parseOrder, ROW_OPTIONS, STATE_OPTIONS } from "./read-options.ts";
import { OUTPUT_OPTIONS, printerOf } from "./row-output.ts";

const OPTIONS = {
  ...ROW_OPTIONS,
  limit: {
    flag: "limit",
    value: "N",
    help: "Maximum number of rows; 0 for all. Default: all, or 100 of a search by --vector or --text.",
    common: "Maximum rows; 0 for all. Default: all; a search: 100.",
    parse: parseInteger(0, Number.MAX_SAFE_INTEGER),
  },
  offset: {
    flag: "offset",
    value: "N",
    help: "Number of rows to skip.",
    common: false,
    fallback: "0",
    parse: parseInteger(0, Number.MAX_SAFE_INTEGER),
  },
  orderBy: {
    flag: "order-by",
    value: "A,B",
    help: 'Columns that order the rows, such as "age desc nulls last, name".',
    common: 'Order, such as "age desc nulls last, name".',
    parse: parseOrder,
  },
  vector: {
    flag: "vector",
    value: "NUMBERS",
    help: "Vector whose nearest neighbours to find, such as [0.5,1].",
    common: "Find the nearest rows to a vector, such as [0.5,1].",
    parse: parseNumbers,
  },
  vectorColumn: {
    flag: "vector-column",
    value: "NAME",
    help: "Column of the vectors. Default: the only one.",
    common: false,
    parse: parseText,
    needs: { flag: "vector" },
  },
  text: {
    flag: "text",
    value: "WORDS",
    help: "Words to find in the columns with a text index.",
    common: "Find words in the columns with a text index.",
    parse: parseText,
  },
  ...OUTPUT_OPTIONS,
  ...STATE_OPTIONS,
  branch: { ...BRANCH_OPTION, common: false },
} as const satisfies OptionTable;

/** Number of rows of a search, without --limit. */
const SEARCH_ROWS = 100;

/** `lance-gateway query`: prints rows of a table, as a table, as CSV or as a JSON object per line. */
export const query = catalogCommand({
  operands: "<TABLE>",
  access: "read",
  options: OPTIONS,
  async run({ namespace, operands: [path = ""], options, signal, print: write }) {
    const { filter, columns, limit, offset, orderBy, vector, vectorColumn, text, version, branch } = options;
    const isSearch = vector !== undefined || text !== undefined;
    if (isSearch && limit === 0)
      throw new UsageError("--limit 0 is for scans; a search has a number of rows");
    const print = printerOf(options);
    const result = namespace.queryTable(
      {
        id: parsePath(path),
        filter,
        columns,
        orderBy: orderBy ?? [],
        vector,
        vectorColumn,
        fullTextQuery: text,
        version,
        branch,
        k: limit === 0 ? undefined : (limit ?? (isSearch ? SEARCH_ROWS : undefined)),
        offset: offset === 0 ? undefined : offset,
      },
      { signal },
    );
    for await (const piece of print(result.bytes())) await write(piece);
  },
});
