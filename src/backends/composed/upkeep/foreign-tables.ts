import type { Logger } from "pino";
import type { Call } from "../../../namespace/call/call.ts";
import { isLanceError } from "../../../namespace/errors.ts";
import { type Identifier, joinIdentifier } from "../../../namespace/identifier.ts";
import type { Backend } from "../../../namespace/lance-namespace.ts";
import { putNewest } from "../../../runtime/collections.ts";
import type { FoundTable } from "../../dir/data/table-source.ts";
import { keyIn } from "../../dir/format/storage.ts";
import { createStorageClock } from "../../dir/format/storage-clock.ts";
import { TABLE_BASE } from "../../dir/format/table-files.ts";
import type { ReadAhead } from "../../dir/operations/read/read-ahead.ts";
import { FOREIGN_UPKEEP_TIMES } from "../../dir/upkeep/activity.ts";
import { createUpkeepLeases } from "../../dir/upkeep/lease.ts";
import type { TendedTable, UpkeepTables } from "../../dir/upkeep/upkeep-tables.ts";
import { type OpenedTable, using } from "../opened-tables.ts";
import type { RowStorage } from "../row-storage.ts";
import { callOfUpkeep, walkCatalog } from "./walk-catalog.ts";

/** Options of {@link createForeignTables}. */
export interface ForeignTablesOptions {
  readonly catalog: Pick<Backend, "operations">;
  /** Opens a table for a call. */
  readonly openTable: (call: Call, id: Identifier) => Promise<OpenedTable>;
  readonly readAhead: ReadAhead;
  readonly log: Logger;
}

/** Errors of a table that is gone, and of one that the gateway cannot work on until the catalog or its options change. */
const GONE = ["TableNotFound", "NamespaceNotFound"] as const;
const CLOSED = ["PermissionDenied", "InvalidTableState", "InvalidInput", "Unsupported"] as const;

/** Errors of a storage that denies the work, or of an upstream whose credentials do not open it. It is tried again. */
const REFUSED = ["ServiceUnavailable", "PermissionDenied", "Unauthenticated", "Internal"] as const;

/** Maximum number of tables that the log names once. */
const MAX_NAMED = 10_000;

/**
 * Creates the tables of an upstream, as upkeep looks after them with the gateway's own credentials. Leases and notes are in the tables'
 * directories, which is all that vended credentials open, so that all gateways in front of the catalog take turns.
 */
export function createForeignTables({
  catalog,
  openTable,
  readAhead,
  log,
}: ForeignTablesOptions): UpkeepTables {
  const [leftOut, failed] = [new Map<string, true>(), new Map<string, true>()];
  /** Number of tables behind which the next walk begins. */
  let passed = 0;

  /** Logs once why a table is left out, or why work on it has failed. */
  function nameOnce(named: Map<string, true>, id: Identifier, error: unknown): undefined {
    const table = joinIdentifier(id);
    if (!named.has(table)) log.warn({ table, err: error }, "a table of the upstream is not looked after");
    putNewest(named, table, true, MAX_NAMED);
  }
  async function open(id: Identifier, signal: AbortSignal): Promise<OpenedTable | undefined> {
    try {
      const opened = await openTable(callOfUpkeep("describeTable", id, log, signal), id);
      leftOut.delete(joinIdentifier(id));
      return opened;
    } catch (error) {
      if (GONE.some((kind) => isLanceError(error, kind))) return undefined;
      if (CLOSED.some((kind) => isLanceError(error, kind))) return nameOnce(leftOut, id, error);
      throw error;
    }
  }
  return {
    readAhead,
    times: FOREIGN_UPKEEP_TIMES,
    async *walk(turn, signal) {
      const after = passed;
      passed = 0;
      try {
        passed = yield* walkCatalog(catalog, { log, turn, signal, after });
      } catch (error) {
        if (!signal.aborted) log.warn({ err: error }, "the upstream does not list its tables for upkeep now");
        throw error;
      }
    },
    async withTable(id, work, signal) {
      try {
        const opened = await open(id, signal);
        return opened && (await using(opened, () => work(tendedIn(opened.storage, opened.table))));
      } catch (error) {
        if (!signal.aborted && REFUSED.some((kind) => isLanceError(error, kind))) nameOnce(failed, id, error);
        throw error;
      }
    },
  };
}

/** Returns a table of an opened storage, as upkeep looks after it. */
export function tendedIn({ context, jobs }: RowStorage, table: FoundTable): TendedTable {
  const base = keyIn(table.location, TABLE_BASE);
  const clock = createStorageClock(context.store, base);
  return {
    context: { ...context, clock },
    table,
    leases: createUpkeepLeases(base, context.store, clock),
    isBusy: () => jobs.isAtWork(table),
  };
}
