import { create } from "@bufbuild/protobuf";
import { GetTableStatsResponseSchema } from "../../../../../gen/lance/namespace/v1/table_pb.ts";
import type { LanceNamespace } from "../../../../../namespace/lance-namespace.ts";
import type { DataContext } from "../../../data/data-context.ts";
import { allIndices } from "../../indices/all-indices.ts";
import { withGuarded } from "../call-data.ts";

/** The operation that returns the statistics of a table. */
export function createStatsOperations(context: DataContext): Pick<LanceNamespace, "getTableStats"> {
  return {
    getTableStats: ({ branch }, call) =>
      withGuarded(context, call, { branch }, async (data) => {
        const { totalBytes, numRows, fragmentStats } = await data.wait(() => data.table.stats());
        const indices = await data.wait(() => allIndices(context, data, branch));
        const { min, max, mean, p25, p50, p75, p99 } = fragmentStats.lengths;
        return create(GetTableStatsResponseSchema, {
          totalBytes: BigInt(totalBytes),
          numRows: BigInt(numRows),
          numIndices: BigInt(indices.length),
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
