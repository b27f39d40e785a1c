import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import { type Identifier, joinIdentifier } from "../../../namespace/identifier.ts";
import { latestVersion } from "../format/versions/version-files.ts";
import { datasetOf } from "../operations/tables/open-data.ts";
import type { UpkeepTimes } from "./activity.ts";
import type { TendedTable, UpkeepTables } from "./upkeep-tables.ts";

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
  tables: Pick<UpkeepTables, "walk" | "withTable" | "finishAbandoned" | "removeRemains">,
  { sweepMs, lookMs, relookMs }: Pick<UpkeepTimes, "sweepMs" | "lookMs" | "relookMs">,
  report: (tended: TendedTable) => Promise<void>,
  log: Logger,
  signal: AbortSignal,
): Promise<void> {
  const pause = (ms: number) => sleep(ms, undefined, { ref: false, signal }).catch(() => {});
  let seen = new Map<string, Look>();
  let resolvedAt = performance.now();

  function look(id: Identifier, now: number): Promise<Look | undefined> {
    const lookIn = async (tended: TendedTable): Promise<Look | undefined> => {
      const newest = await latestVersion(datasetOf(tended.context, tended.table));
      if (newest === undefined) return undefined;
      const last = seen.get(joinIdentifier(id));
      if (last?.version === newest.version && now - last.reportedAt < relookMs) return last;
      await report(tended);
      return { version: newest.version, reportedAt: now };
    };
    return tables.withTable(id, lookIn, signal);
  }
  /** Finishes what other processes have left, also during a round, which takes long in a large catalog. */
  async function resolveIfDue(): Promise<void> {
    if (performance.now() - resolvedAt < sweepMs) return;
    resolvedAt = performance.now();
    await tables.finishAbandoned?.();
  }
  async function lookAtAll(): Promise<void> {
    const found = new Map<string, Look>();
    for await (const id of tables.walk(() => pause(lookMs), signal)) {
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
      await tables.removeRemains?.();
    } catch (error) {
      log.debug({ err: error }, "the tables cannot be looked at for upkeep now");
    }
    await pause(Math.max(lookMs, startedAt + sweepMs - performance.now()));
  }
}
