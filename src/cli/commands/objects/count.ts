import { parsePath } from "../../../client/object-path.ts";
import { catalogCommand } from "../catalog-command.ts";
import { ROW_OPTIONS, STATE_OPTIONS } from "../rows/read-options.ts";

/** `lance-gateway count`: prints the number of rows of a table. */
export const count = catalogCommand({
  operands: "<TABLE>",
  access: "read",
  options: { filter: ROW_OPTIONS.filter, ...STATE_OPTIONS },
  async run({ namespace, operands: [path = ""], options, signal, print }) {
    const { filter, version, branch } = options;
    const request = { id: parsePath(path), predicate: filter, version, branch };
    const { count: rows } = await namespace.countTableRows(request, { signal });
    await print(options.json ? `{"count":${rows}}\n` : `${rows}\n`);
  },
});
