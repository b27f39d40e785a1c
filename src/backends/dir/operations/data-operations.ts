import type { Backend } from "../../../namespace/lance-namespace.ts";
import type { DataContext } from "../data/data-context.ts";
import { createBackfillOperations } from "./columns/backfill.ts";
import { createColumnOperations } from "./columns/columns.ts";
import { createMetadataOperations } from "./columns/schema-metadata.ts";
import type {
  DirectAccessContext,
  EngineContext,
  PageContext,
  ReadContext,
  RowJobContext,
  UploadContext,
} from "./context.ts";
import { createIndexOperations } from "./indices/indices.ts";
import { createReadOperations } from "./read/read.ts";
import { createRowExtensions } from "./row-extensions.ts";
import { createChangeOperations } from "./rows/change.ts";
import { createInsertOperations } from "./rows/insert-into-table.ts";
import { createMergeOperations } from "./rows/merge.ts";
import type { MergeLocks } from "./rows/merge-locks.ts";
import type { MultipartWrites } from "./rows/multipart.ts";
import { createStatsOperations } from "./tables/describe/stats.ts";
import { createBranchOperations } from "./versions/branches.ts";
import { createTagOperations } from "./versions/tags.ts";
import { createTransactionOperations } from "./versions/transactions.ts";
import { createVersionOperations } from "./versions/versions.ts";

/** Context of the operations on the data of tables, for any catalog that lists the tables. */
export interface RowsContext
  extends DataContext,
    UploadContext,
    RowJobContext,
    EngineContext,
    ReadContext,
    PageContext,
    DirectAccessContext {}

/** Parts that the operations on data share with others. */
export interface RowsParts {
  readonly writes: MultipartWrites;
  readonly mergeLocks: Pick<MergeLocks, "withLock">;
}

/** The operations on the data of existing tables: rows, searches, columns, indices, versions, branches and tags. */
export function createDataOperations(context: RowsContext, { writes, mergeLocks }: RowsParts) {
  const operations = {
    ...createInsertOperations(context, writes),
    ...createReadOperations(context),
    ...createMergeOperations(context, mergeLocks),
    ...createChangeOperations(context),
    ...createStatsOperations(context),
    ...createVersionOperations(context),
    ...createTagOperations(context),
    ...createBranchOperations(context),
    ...createTransactionOperations(context),
    ...createColumnOperations(context),
    ...createBackfillOperations(context),
    ...createMetadataOperations(context),
    ...createIndexOperations(context),
  } satisfies Backend["operations"];
  return { operations, extensions: createRowExtensions(context, writes) };
}

type DataOperations = ReturnType<typeof createDataOperations>;

/** Names of the operations on data. */
export type DataOperation = keyof DataOperations["operations"] | keyof DataOperations["extensions"];
