import type { BatchDeleteTableVersionsRequest } from "../../../../gen/lance/namespace/v1/version_pb.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import { type Identifier, joinIdentifier } from "../../../../namespace/identifier.ts";
import { type BackendOperations, callIn, wrapOperations } from "../../../../namespace/lance-namespace.ts";
import { factsOf, isReadOperation } from "../../../../namespace/operations/operations.ts";
import type { TableContext } from "../../catalog/catalog-context.ts";
import type { WriteGate } from "../../concurrency/locks.ts";
import type { FoundTable } from "../../data/table-source.ts";
import { normalizeBranch } from "../../format/dataset.ts";
import { reachNewest } from "../../format/versions/delete-versions.ts";
import { findTable } from "../tables/find-table.ts";
import { datasetOf } from "../tables/open-data.ts";
import { toRanges } from "./plan-batch.ts";

/** Longest wait for the running changes of a table, in milliseconds. */
const DRAIN_MS = 5_000;

/**
 * Lets each operation that may write pass the gate of its object's history, except those that keep other changes apart: those by which
 * clients commit through the catalog, which have locks of their own, drops, which close the gate themselves, and CreateTable, which builds
 * on no rows, and takes a version back itself if its row is refused.
 */
export function besideDeletions(
  { histories }: Pick<TableContext, "histories">,
  all: BackendOperations,
): BackendOperations {
  return wrapOperations(all, (handler, localName) => {
    if (isReadOperation(localName) || factsOf(localName)?.keepsApart) return handler;
    return (...args) =>
      histories.pass(joinIdentifier(callIn(args).id), () => handler(...args) as Promise<unknown>);
  });
}

/**
 * Deletes the newest versions of tables while nothing makes a version of them. The engine computes a change on the version that it has
 * read, and does not notice at its commit that this version is gone: the new version would bring its rows back.
 *
 * @param work deletes; the caller holds the locks of the tables. It gets the gates as they are for it: those of the tables need not be
 *   closed once more
 * @throws LanceError ConcurrentModification if changes go on for too long, or a process has a note of long work; the errors of `work`
 */
export async function deleteAlone<T>(
  context: Pick<TableContext, "gate" | "histories" | "work">,
  tables: readonly Pick<FoundTable, "id" | "path" | "location">[],
  work: (histories: WriteGate) => Promise<T>,
): Promise<T> {
  const { gate, histories } = context;
  const opens: (() => void)[] = [];
  const closed = new Set<string>();
  try {
    for (const { id, path, location } of tables) {
      const key = joinIdentifier(id);
      closed.add(key);
      opens.push(await histories.close(key, DRAIN_MS));
      const isBusy =
        (await histories.isRunning(key)) ||
        // The engine goes on with changes whose calls were cancelled.
        (await gate.isRunning(path)) ||
        (await gate.isBusy(path)) ||
        (await context.work.isActive(location));
      if (isBusy) throw beingChanged(id);
    }
    const close: WriteGate["close"] = async (key, drainMs) =>
      closed.has(key) ? () => {} : histories.close(key, drainMs);
    return await work({ ...histories, close });
  } finally {
    for (const open of opens) open();
  }
}

function beingChanged(id: Identifier): LanceError {
  return new LanceError(
    "ConcurrentModification",
    `a change of ${joinIdentifier(id)} goes on that may have read the newest version; delete that version again later`,
  );
}

/** A deletion in a batch, of a table that may not be there. */
export interface Deletion {
  readonly id: Identifier;
  readonly request: BatchDeleteTableVersionsRequest;
}

/** Returns the tables of which deletions may take the newest version; the plan of the batch says what is wrong with the others. */
export async function withReachedNewest(
  context: TableContext,
  deletions: readonly Deletion[],
): Promise<FoundTable[]> {
  const reached = new Map<string, FoundTable>();
  if (deletions.length === 0) return [];
  const state = await context.catalog.read();
  for (const { id, request } of deletions) {
    const table = id.length === 0 ? undefined : await findTable(context, state, id);
    if (table === undefined) continue;
    await context.layout.checkNoEscape(table.location);
    const dataset = datasetOf(context, table, normalizeBranch(request.branch));
    if (await reachNewest(dataset, toRanges(request.ranges))) reached.set(joinIdentifier(id), table);
  }
  return [...reached.values()];
}
