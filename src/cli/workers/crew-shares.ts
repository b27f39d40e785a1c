import type { Configuration } from "../../config/configuration.ts";
import { changedOptions, keepsBackend } from "../../gateway/reload/plan-changes.ts";
import { divideConfiguration, FAILURES, PAUSES, RESETS, sharedCells } from "../../gateway/workers.ts";
import type { ChangeForWorker, DatabaseSlot, DatabaseSlots } from "./messages.ts";
import { allocateAll, type CellsMemory } from "./shared-cells.ts";
import { openSharedMemory } from "./shared-memory.ts";

/** Options by which the numbers of limits are shared. */
const LIMITS = ["rateLimits", "maxCallerCalls", "maxCallerDownloads", "maxCallerBytes"] as const;

/** Numbers that no option changes. */
const LASTING: readonly string[] = [FAILURES, RESETS, PAUSES];

/** Allocates the memory that workers share for a configuration. */
export type AllocateShares = (configuration: Configuration, former?: ChangeForWorker) => ChangeForWorker;

/**
 * Creates the allocation of shares. Databases whose backends a changed configuration keeps also keep their memory, and so do
 * limits that stay the same.
 */
export function createShares(workers: number): AllocateShares {
  let slots = 0;

  function newSlot(): DatabaseSlot {
    return { slot: slots++, memory: openSharedMemory({ workers, databases: 1 }).buffer };
  }
  function slotsOf(configuration: Configuration, former: ChangeForWorker | undefined): DatabaseSlots {
    const names = [...(configuration.databases?.byName.keys() ?? [""])];
    const own = divideConfiguration(configuration, workers);
    const before = former && divideConfiguration(former.configuration, workers);
    const entries = names.map((name) => {
      const isKept = before !== undefined && keepsBackend(before, own, name);
      return [name, (isKept && former?.databases[name]) || newSlot()] as const;
    });
    return Object.fromEntries(entries);
  }
  function cellsOf({ options }: Configuration, former: ChangeForWorker | undefined): CellsMemory {
    const isSame =
      former !== undefined && changedOptions(former.configuration.options, options, LIMITS).length === 0;
    const shapes = Object.entries(sharedCells(options));
    const kept = shapes.flatMap(([name]) => {
      const cells = former?.cells[name];
      return cells !== undefined && (isSame || LASTING.includes(name)) ? [[name, cells] as const] : [];
    });
    const known = Object.fromEntries(kept);
    const missing = shapes.filter(([name]) => known[name] === undefined);
    return { ...known, ...allocateAll(Object.fromEntries(missing), workers) };
  }
  return (configuration, former) => ({
    configuration,
    databases: slotsOf(configuration, former),
    cells: cellsOf(configuration, former),
  });
}

/** Returns the places of databases. */
export function slotNumbers(databases: DatabaseSlots): readonly number[] {
  return Object.values(databases).map(({ slot }) => slot);
}
