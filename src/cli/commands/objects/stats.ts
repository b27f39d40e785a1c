import { GetTableStatsResponseSchema } from "../../../client/exports.ts";
import { parsePath } from "../../../client/object-path.ts";
import { DescribePageCacheResponseSchema } from "../../../gen/lance/gateway/v1/lancedb_pb.ts";
import { catalogCommand } from "../catalog-command.ts";
import { jsonOf } from "../message-json.ts";
import { BRANCH_OPTION } from "../rows/read-options.ts";
import { factTable, sizeText } from "../text-table.ts";
import { cachedBytesOf, cacheFacts } from "../upkeep/prewarm.ts";

/** `lance-gateway stats`: prints the figures of a table. */
export const stats = catalogCommand({
  operands: "<TABLE>",
  access: "read",
  options: { branch: BRANCH_OPTION },
  async run({ namespace, backend, operands: [path = ""], options: { branch }, signal, answer }) {
    const id = parsePath(path);
    const [found, cached] = await Promise.all([
      namespace.getTableStats({ id, branch }, { signal }),
      cachedBytesOf(backend, id, signal),
    ]);
    const { numRows, totalBytes, numIndices, fragmentStats } = found;
    const lengths = fragmentStats?.lengths;
    const figures = jsonOf(GetTableStatsResponseSchema, found) as object;
    const json =
      cached === undefined ? figures : { ...figures, cache: jsonOf(DescribePageCacheResponseSchema, cached) };
    await answer(json, () =>
      factTable({
        rows: numRows,
        size: sizeText(Number(totalBytes)),
        indices: numIndices,
        fragments: fragmentStats?.numFragments,
        "small fragments": fragmentStats?.numSmallFragments,
        "rows in a fragment": lengths && `${lengths.min} to ${lengths.max}, ${lengths.mean} on average`,
        ...cacheFacts(cached),
      }),
    );
  },
});
