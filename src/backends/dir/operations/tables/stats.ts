import { create } from "@bufbuild/protobuf";
import { GetTableStatsResponseSchema } from "../../../../gen/lance/namespace/v1/table_pb.ts";
import type { LanceNamespace } from "../../../../namespace/lance-namespace.ts";
import type { TableContext } from "../../catalog/catalog-context.ts";
import { withGuarded } from "./guarded.ts";

/** The operation that returns the statistics of a table. */
export function createStatsOperations(context: TableContext): Pick<LanceNamespace, "getTableStats"> {
  return {
    getTableStats: ({ branch }, call) =>
      withGuarded(context, call, { branch }, async ({ table, wait }) => {
        const { totalBytes, numRows, numIndices, fragmentStats } = await wait(() => table.stats());
        const { min, max, mean, p25, p50, p75, p99 } = fragmentStats.lengths;
        return create(GetTableStatsResponseSchema, {
          totalBytes: BigInt(totalBytes),
          numRows: BigInt(numRows),
          numIndices: BigInt(numIndices),
          fragmentStats: {
            numFragments: BigInt(fragmentStats.numFragments),
            numSmallFragments: BigInt(fragmentStats.numSmallFragments),
            lengths: {
              min: BigInt(min),
              max: BigInt(max),
              mean: BigInt(Math.round(mean)),
              p25: BigInt(p25),
              p50: BigInt(p50),
              p75: BigInt(p75),
              p99: BigInt(p99),
            },
          },
        });
      }),
  };
}
