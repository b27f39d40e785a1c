import { create } from "@bufbuild/protobuf";
import { formatFieldPath, resolveField } from "../../../../arrow/field-path.ts";
import { freeAtOnce } from "../../../../arrow/memory.ts";
import {
  PrewarmDataResponseSchema,
  PrewarmIndexResponseSchema,
} from "../../../../gen/lance/gateway/v1/lancedb_pb.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import type { LanceDbExtensions } from "../../../../namespace/lance-namespace.ts";
import type { DataContext } from "../../data/data-context.ts";
import { MAX_BATCH_ROWS } from "../../engine/batch-rows.ts";
import type { DatasetRef } from "../../format/dataset.ts";
import { listTree } from "../../format/storage.ts";
import { latestVersion } from "../../format/versions/version-files.ts";
import { readParts } from "../../format/versions/version-parts.ts";
import type { ReadContext } from "../context.ts";
import { withGuarded } from "../tables/call-data.ts";
import { datasetOf } from "../tables/open-data.ts";
import { COLUMN_BYTES, sizeOfColumns } from "./columns-size.ts";
import { inRoom } from "./in-room.ts";

/** Returns the keys of the files that the newest version of a table reads: those of its indices first, then the others if they are asked for. */
async function cacheableKeys(dataset: DatasetRef, isWhole: boolean): Promise<readonly string[]> {
  const newest = await latestVersion(dataset);
  const parts = newest && (await readParts(dataset, newest));
  if (parts === undefined) return [];
  const ofDirectories: string[] = [];
  for (const directory of parts.directories.keys()) {
    if (!isWhole && !directory.includes("/_indices/")) continue;
    for (const name of await listTree(dataset.store, directory)) ofDirectories.push(`${directory}/${name}`);
  }
  return isWhole ? [...ofDirectories, ...parts.files.keys()] : ofDirectories;
}

/** The calls that load indices and columns before they are needed. */
export function createPrewarmOperations(
  context: DataContext & ReadContext,
): Pick<LanceDbExtensions, "prewarmIndex" | "prewarmData"> {
  const { readAhead, fillCache } = context;
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
    // The engine has no cache of pages, so the columns are read once: the cache on disk keeps them, or the operating system what it has memory for.
    async prewarmData({ columns }, call) {
      await withGuarded(context, call, {}, async (data) => {
        const { table, schema, wait } = data;
        const current = await schema();
        const found = columns.map((column) => resolveField(current, column));
        const names = found.map((field) => formatFieldPath(field.names));
        if (fillCache !== undefined) {
          const keys = await cacheableKeys(datasetOf(context, data.found), names.length === 0);
          await wait(() => fillCache(keys, call.signal));
          if (names.length === 0) return;
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
  };
}
