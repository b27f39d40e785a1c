import type { Identifier } from "../../../../namespace/identifier.ts";
import type { CatalogDataContext, JobContext } from "../context.ts";
import { requireTable } from "../tables/find-table.ts";

/** The kind of the jobs that refresh a view. */
export const REFRESH_VIEW = "refresh_view";

/** Request for a refresh. */
export interface WantedRefresh {
  /** The version of the source. Default: the newest. */
  readonly srcVersion?: bigint | undefined;
  /** Whether all rows are replaced. Default: only where adding some does not do. */
  readonly full?: boolean | undefined;
}

/** Starts the job that refreshes a view, and returns its id. @param caller Default: the gateway itself */
export async function submitRefresh(
  context: CatalogDataContext & JobContext,
  view: Identifier,
  { srcVersion, full = false }: WantedRefresh = {},
  caller?: string,
): Promise<string> {
  const { location } = await requireTable(context, { id: view });
  const spec = {
    location,
    ...(full && { full }),
    ...(srcVersion !== undefined && { sourceVersion: String(srcVersion) }),
  };
  return (await context.jobs.submit({ kind: REFRESH_VIEW, table: view, spec }, caller)).id;
}
