import { LanceDbService } from "../../gen/lance/gateway/v1/lancedb_pb.ts";
import { isLanceError } from "../../namespace/errors.ts";
import type { Connection } from "../session/connection.ts";
import { formatBytes } from "../shell/format.ts";

/** Returns what of a table is in the gateway's cache on disk, as text; undefined without such a cache. */
export async function describeCache(
  connection: Connection,
  id: readonly string[],
  signal: AbortSignal,
): Promise<string | undefined> {
  const { describePageCache } = LanceDbService.method;
  try {
    const found = await connection.unary(describePageCache, { id: [...id] }, signal);
    const cached = Number(found.cachedIndexBytes + found.cachedDataBytes);
    const all = Number(found.indexBytes + found.dataBytes);
    const part = `${formatBytes(cached)} of ${formatBytes(Math.max(all, cached))}`;
    return found.isPinned ? `${part}, pinned` : part;
  } catch (error) {
    if (isLanceError(error, "Unsupported")) return undefined;
    throw error;
  }
}
