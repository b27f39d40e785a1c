import { create } from "@bufbuild/protobuf";
import { formatFieldPath, resolveField } from "../../../../arrow/field-path.ts";
import {
  PrewarmDataResponseSchema,
  PrewarmIndexResponseSchema,
} from "../../../../gen/lance/gateway/v1/lancedb_pb.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import type { LanceDbExtensions } from "../../../../namespace/lance-namespace.ts";
import type { TableContext } from "../../catalog/catalog-context.ts";
import { withGuarded } from "../tables/guarded.ts";

/** Number of rows that are read at a time and put away. */
const BATCH_ROWS = 1024;

/** The calls that load indices and columns before they are needed. */
export function createPrewarmOperations(
  context: TableContext,
): Pick<LanceDbExtensions, "prewarmIndex" | "prewarmData"> {
  return {
    async prewarmIndex({ indexName }, call) {
      await withGuarded(context, call, {}, async ({ table, wait }) => {
        const indices = await wait(() => table.listIndices());
        if (!indices.some(({ name }) => name === indexName)) {
          throw new LanceError("TableIndexNotFound", `index ${JSON.stringify(indexName)} does not exist`);
        }
        await wait(() => table.prewarmIndex(indexName));
      });
      return create(PrewarmIndexResponseSchema);
    },
    // The engine has no cache of pages, so the columns are read once: the operating system keeps what it has memory for.
    async prewarmData({ columns }, call) {
      await withGuarded(context, call, {}, async ({ table, schema, wait }) => {
        const current = await schema();
        const names = columns.map((column) => formatFieldPath(resolveField(current, column).names));
        const query = table.query();
        if (names.length > 0) query.selectColumns(names);
        const batches = await wait(() => query.execute(BATCH_ROWS));
        while ((await wait(() => batches.next())) !== null);
      });
      return create(PrewarmDataResponseSchema);
    },
  };
}
