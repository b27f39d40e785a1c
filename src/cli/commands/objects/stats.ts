import { GetTableStatsResponseSchema } from "../../../client/exports.ts";
import { parsePath } from "../../../client/object-path.ts";
import { catalogCommand } from "../catalog-command.ts";
import { jsonOf } from "../message-json.ts";
import { BRANCH_OPTION } from "../rows/read-options.ts";
import { factTable, sizeText } from "../text-table.ts";

/** `lance-gateway stats`: prints the figures of a table. */
export const stats = catalogCommand({
  operands: "<TABLE>",
  access: "read",
  options: { branch: BRANCH_OPTION },
  async run({ namespace, operands: [path = ""], options: { branch }, signal, answer }) {
    const found = await namespace.getTableStats({ id: parsePath(path), branch }, { signal });
    const { numRows, totalBytes, numIndices, fragmentStats } = found;
    const lengths = fragmentStats?.lengths;
    await answer(jsonOf(GetTableStatsResponseSchema, found), () =>
      factTable({
        rows: numRows,
        size: sizeText(Number(totalBytes)),
        indices: numIndices,
        fragments: fragmentStats?.numFragments,
        "small fragments": fragmentStats?.numSmallFragments,
        "rows in a fragment": lengths && `${lengths.min} to ${lengths.max}, ${lengths.mean} on average`,
      }),
    );
  },
});
