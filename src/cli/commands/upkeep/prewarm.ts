import { createCaller } from "../../../client/caller.ts";
import { toMessage } from "../../../client/input.ts";
import { parsePath } from "../../../client/object-path.ts";
import { parseText } from "../../../config/parsers.ts";
import {
  type DescribePageCacheResponse,
  DescribePageCacheResponseSchema,
  LanceDbService,
} from "../../../gen/lance/gateway/v1/lancedb_pb.ts";
import { isLanceError, LanceError } from "../../../namespace/errors.ts";
import type { Backend } from "../../../namespace/lance-namespace.ts";
import { catalogCommand, jsonOf } from "../catalog-command.ts";
import { factTable, sizeText } from "../text-table.ts";

const { prewarmData, describePageCache } = LanceDbService.method;

/** Asks a gateway what of a table is in its cache on disk; undefined if it has none. */
export async function cachedBytesOf(
  { name, extensions = {} }: Backend,
  id: readonly string[],
  signal: AbortSignal,
): Promise<DescribePageCacheResponse | undefined> {
  if (!(describePageCache.localName in extensions)) return undefined;
  const caller = createCaller(name, extensions as never);
  const asked = toMessage(describePageCache.input, { id });
  try {
    return (await caller.unary(describePageCache, asked, { signal })) as DescribePageCacheResponse;
  } catch (error) {
    // The gateway may forward to a server that does not know the operation.
    if (isLanceError(error, "Unsupported")) return undefined;
    throw error;
  }
}

/** Returns the figures of the cache for a table of facts. */
export function cacheFacts(found: DescribePageCacheResponse | undefined): Readonly<Record<string, string>> {
  if (found === undefined) return {};
  // The table does not record the size of each file.
  const part = (cached: bigint, all: bigint) =>
    `${sizeText(Number(cached))} of ${sizeText(Number(all > cached ? all : cached))}`;
  return {
    "cached indices": part(found.cachedIndexBytes, found.indexBytes),
    "cached data": part(found.cachedDataBytes, found.dataBytes),
    pinned: found.isPinned ? "yes" : "no",
  };
}

/** `lance-gateway prewarm`: reads a table into the cache on disk of a gateway. */
export const prewarm = catalogCommand({
  operands: "<TABLE>",
  access: "read",
  options: {
    columns: {
      flag: "column",
      value: "NAME",
      help: "Read the indices and only this column. Default: all columns.",
      parse: parseText,
      repeatable: true,
    },
  },
  async run({ backend, operands: [path = ""], options: { columns }, signal, answer }) {
    const { name, extensions = {} } = backend;
    if (!(prewarmData.localName in extensions))
      throw new LanceError("Unsupported", `a ${name} connection cannot prewarm; REST and directories can`);
    const id = parsePath(path);
    const caller = createCaller(name, extensions as never);
    await caller.unary(prewarmData, toMessage(prewarmData.input, { id, columns: [...columns] }), { signal });
    const found = await cachedBytesOf(backend, id, signal);
    await answer(
      { table: path, cache: found ? jsonOf(DescribePageCacheResponseSchema, found) : null },
      () => {
        if (found === undefined) return `read ${path}; the gateway has no cache on disk\n`;
        return factTable(cacheFacts(found));
      },
    );
  },
});
