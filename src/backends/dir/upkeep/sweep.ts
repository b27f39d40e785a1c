import { setTimeout as sleep } from "node:timers/promises";
import { type Identifier, joinIdentifier } from "../../../namespace/identifier.ts";
import type { ChangeContext } from "../batch/change-context.ts";
import { resolveAbandoned } from "../batch/resolve.ts";
import { walkAllTables } from "../catalog/walk.ts";
import { latestVersion } from "../format/versions/version-files.ts";
import { findTable } from "../operations/tables/find-table.ts";
import { datasetOf } from "../operations/tables/open-data.ts";
import type { UpkeepTimes } from "./activity.ts";
import { findGoneLeases } from "./gone-leases.ts";

/** A look at a table. */
interface Look {
  readonly version: bigint;
  /** When the table was last reported, in milliseconds of `performance.now`. */
  readonly reportedAt: number;
}

/**
 * Looks at all tables of a catalog in turn, for writes of other processes and for versions that have grown old. It
 * takes a request or two for each table, at a bounded rate, and ends when the signal aborts.
 *
 * @param report gets a table with a version that was not seen before, and each table after some time
 */
export async function sweepTables(
  context: ChangeContext,
  { sweepMs, lookMs, relookMs }: Pick<UpkeepTimes, "sweepMs" | "lookMs" | "relookMs">,
  report: (id: Identifier, location: string) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  const { catalog, log } = context;
  const pause = (ms: number) => sleep(ms, undefined, { ref: false, signal }).catch(() => {});
  let seen = new Map<string, Look>();
  let resolvedAt = performance.now();

  async function look(id: Identifier, now: number): Promise<Look | undefined> {
    const table = await findTable(context, await catalog.read(), id);
    const newest = table && (await latestVersion(datasetOf(context, table)));
    if (table === undefined || newest === undefined) return undefined;
    const last = seen.get(joinIdentifier(id));
    if (last?.version === newest.version && now - last.reportedAt < relookMs) return last;
    await report(id, table.location);
    return { version: newest.version, reportedAt: now };
  }
  /** Finishes what other processes have left, also during a round, which takes long in a large catalog. */
  async function resolveIfDue(): Promise<void> {
    if (performance.now() - resolvedAt < sweepMs) return;
    resolvedAt = performance.now();
    await resolveAbandoned(context);
  }
  async function lookAtAll(): Promise<void> {
    const found = new Map<string, Look>();
    for await (const id of walkAllTables(context)) {
      await pause(lookMs);
      if (signal.aborted) return;
      const name = joinIdentifier(id);
      // A table that cannot be read must not keep the others from being looked at.
      const looked = await look(id, performance.now()).catch((error: unknown) => {
        log.debug({ err: error, table: name }, "a table cannot be looked at for upkeep now");
        return seen.get(name);
      });
      if (looked !== undefined) found.set(name, looked);
      await resolveIfDue();
    }
    seen = found;
  }
  while (!signal.aborted) {
    const startedAt = performance.now();
    try {
      await lookAtAll();
      await resolveIfDue();
      for await (const lease of findGoneLeases(context)) await context.store.deleteDirectory(lease);
    } catch (error) {
      log.debug({ err: error }, "the tables cannot be looked at for upkeep now");
    }
    await pause(Math.max(lookMs, startedAt + sweepMs - performance.now()));
  }
}
