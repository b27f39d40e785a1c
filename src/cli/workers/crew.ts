import type { Configuration } from "../../config/configuration.ts";
import { changedOptions, keepsBackend } from "../../gateway/reload/plan-changes.ts";
import { divideConfiguration, FAILURES, PAUSES, RESETS, sharedCells } from "../../gateway/workers.ts";
import { LanceError } from "../../namespace/errors.ts";
import { ownProfiles, type Profiles } from "../../server/admin/admin-server.ts";
import type { ChangeForWorker, DatabaseSlot, DatabaseSlots } from "./messages.ts";
import { allocateAll, type CellsMemory, openSharedMemory } from "./shared-memory.ts";
import type { WorkerThread } from "./worker-thread.ts";

/** Options of {@link createCrewProfiles}. */
interface CrewProfilesOptions {
  /** Returns the workers by their positions; a position is empty while its worker is replaced. */
  readonly crew: readonly (WorkerThread | undefined)[];
  /** Called before and after a worker stops for a snapshot of its heap. */
  readonly pausing: (worker: number, paused: boolean) => void;
}

/** Creates the profiles of a process with workers. */
export function createCrewProfiles({ crew, pausing }: CrewProfilesOptions): Profiles {
  function threadOf(worker: number): WorkerThread {
    const thread = crew[worker - 1];
    if (thread !== undefined) return thread;
    throw new LanceError(
      "InvalidInput",
      `worker ${worker} is not running; workers are numbered 1 to ${crew.length}`,
    );
  }
  return {
    async heapSnapshot(worker) {
      if (worker === undefined) return ownProfiles.heapSnapshot();
      const thread = threadOf(worker);
      pausing(worker - 1, true);
      try {
        return await thread.heapSnapshot();
      } finally {
        if (crew[worker - 1] === thread) pausing(worker - 1, false);
      }
    },
    async cpuProfile(milliseconds, worker) {
      if (worker === undefined) return ownProfiles.cpuProfile(milliseconds);
      const profile = await threadOf(worker).cpuProfile(milliseconds);
      if (profile !== undefined) return profile;
      throw new LanceError("ServiceUnavailable", `worker ${worker} cannot be profiled now`);
    },
  };
}

/** Whether a process with workers can answer calls. */
interface CrewReadiness {
  readonly ready: boolean;
  /** Looks at the workers again. */
  update(): void;
}

/**
 * Creates the readiness of a process: at first all workers must be ready. A worker that replaces another one counts as
 * soon as it has been ready, so that the process stays ready meanwhile.
 *
 * @param size number of workers
 * @param serving returns the workers that listen now
 * @param onChange called after each change
 */
export function createCrewReadiness(
  size: number,
  serving: () => readonly WorkerThread[],
  onChange: (ready: boolean) => void,
): CrewReadiness {
  const wereReady = new WeakSet<WorkerThread>();
  let [hasBegun, ready] = [false, false];

  function isReady(): boolean {
    const workers = serving();
    for (const worker of workers) if (worker.ready) wereReady.add(worker);
    if (!hasBegun) return workers.length === size && workers.every((worker) => worker.ready);
    const counted = workers.filter((worker) => wereReady.has(worker));
    return counted.length > 0 && counted.every((worker) => worker.ready);
  }
  return {
    get ready() {
      return ready;
    },
    update() {
      const now = isReady();
      if (now === ready) return;
      hasBegun = true;
      ready = now;
      onChange(ready);
    },
  };
}

/** Options by which the numbers of limits are shared. */
const LIMITS = ["rateLimits", "maxCallerCalls", "maxCallerDownloads", "maxCallerBytes"] as const;

/** Numbers that no option changes. */
const LASTING: readonly string[] = [FAILURES, RESETS, PAUSES];

/** Allocates the memory that workers share for a configuration. */
type AllocateShares = (configuration: Configuration, former?: ChangeForWorker) => ChangeForWorker;

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
