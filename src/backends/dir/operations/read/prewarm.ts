import { create } from "@bufbuild/protobuf";
import { formatFieldPath, resolveField } from "../../../../arrow/field-path.ts";
import {
  DescribePageCacheResponseSchema,
  PrewarmDataResponseSchema,
  PrewarmIndexResponseSchema,
} from "../../../../gen/lance/gateway/v1/lancedb_pb.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import type { LanceDbExtensions } from "../../../../namespace/lance-namespace.ts";
import { freeAtOnce } from "../../../../runtime/byte-memory.ts";
import type { DataContext } from "../../data/data-context.ts";
import { MAX_BATCH_ROWS } from "../../engine/row-widths.ts";
import { indexNotFound } from "../../format/changes/index-entries.ts";
import type { DatasetRef } from "../../format/dataset.ts";
import { listTree } from "../../format/storage.ts";
import { latestVersion } from "../../format/versions/version-files.ts";
import { readParts } from "../../format/versions/version-parts.ts";
import type { ReadContext } from "../context.ts";
import { allIndices } from "../indices/all-indices.ts";
import { isForOthers } from "../indices/index-kinds.ts";
import { withGuarded } from "../tables/call-data.ts";
import { requireTable } from "../tables/find-table.ts";
import { datasetOf } from "../tables/open-data.ts";
import { inRoom } from "./memory-room.ts";
import { COLUMN_BYTES, sizeOfColumns } from "./sampled-width.ts";

/** Files that a version of a table reads. */
interface CacheableFiles {
  readonly keys: readonly string[];
  /** In bytes, as far as the version records it. */
  readonly bytes: number;
}

/** Returns the files that the newest version of a table reads: those of its indices, and the others. */
export async function cacheableFiles(
  dataset: DatasetRef,
): Promise<Readonly<Record<"indices" | "data", CacheableFiles>>> {
  const newest = await latestVersion(dataset);
  const parts = newest && (await readParts(dataset, newest));
  const [indices, data] = [
    { keys: [] as string[], bytes: 0 },
    { keys: [] as string[], bytes: 0 },
  ];
  for (const [directory, bytes] of parts?.directories ?? []) {
    const target = directory.includes("/_indices/") ? indices : data;
    for (const name of await listTree(dataset.store, directory)) target.keys.push(`${directory}/${name}`);
    target.bytes += bytes;
  }
  for (const [key, bytes] of parts?.files ?? []) {
    data.keys.push(key);
    data.bytes += bytes;
  }
  return { indices, data };
}

/** The calls that load indices and columns before they are needed. */
export function createPrewarmOperations(
  context: DataContext & ReadContext,
): Pick<LanceDbExtensions, "prewarmIndex" | "prewarmData" | "describePageCache"> {
  const { readAhead, cache, pins } = context;
  return {
    async prewarmIndex({ indexName }, call) {
      await withGuarded(context, call, {}, async (data) => {
        const indices = await data.wait(() => allIndices(context, data, undefined));
        const found = indices.find(({ name }) => name === indexName);
        if (found === undefined) throw indexNotFound(indexName);
        if (isForOthers(found.indexType))
          throw new LanceError("Unsupported", `queries here do not use indices of type ${found.indexType}`);
        await data.wait(() => data.table.prewarmIndex(indexName));
      });
      return create(PrewarmIndexResponseSchema);
    },
    // The engine has no cache of pages, so the columns are read once: the cache on disk keeps them, or the operating system what it has memory for.
    async prewarmData({ columns }, call) {
      await withGuarded(context, call, {}, async (data) => {
        const { table, schema, wait } = data;
        const current = await schema();
        const found = columns.map((column) => resolveField(current, column));
        const names = found.map((field) => formatFieldPath(field.names));
        if (cache !== undefined) {
          const files = await cacheableFiles(datasetOf(context, data.found));
          const isWhole = names.length === 0;
          const keys = isWhole ? [...files.indices.keys, ...files.data.keys] : files.indices.keys;
          await wait(() => cache.fill(keys, call.signal));
          if (isWhole) return;
        }
        const fields = current.fields.filter(({ name }) => found.some((field) => field.names[0] === name));
        const query = table.query();
        if (names.length > 0) query.selectColumns(names);
        const read = names.length > 0 ? fields : current.fields;
        const size = await sizeOfColumns(read, data);
        const bytes = size?.readAheadBytes ?? COLUMN_BYTES;
        await inRoom(bytes, { call, readAhead }, async () => {
          const batches = await wait(() => query.execute(size?.batchRows ?? MAX_BATCH_ROWS));
          const next = () => wait(() => batches.next());
          for (let file = await next(); file !== null; file = await next()) freeAtOnce(file);
        });
      });
      return create(PrewarmDataResponseSchema);
    },
    async describePageCache(_, call) {
      const table = await requireTable(context, call);
      if (cache === undefined)
        throw new LanceError("Unsupported", "the gateway has no cache on disk for this table (--cache-dir)");
      const { indices, data } = await cacheableFiles(datasetOf(context, table));
      const cachedOf = async ({ keys }: CacheableFiles) =>
        BigInt((await cache.measure(keys, call.signal)).reduce((sum, bytes) => sum + bytes, 0));
      return create(DescribePageCacheResponseSchema, {
        indexBytes: BigInt(indices.bytes),
        cachedIndexBytes: await cachedOf(indices),
        dataBytes: BigInt(data.bytes),
        cachedDataBytes: await cachedOf(data),
        isPinned: pins?.isPinned(table) ?? false,
      });
    },
  };
}
