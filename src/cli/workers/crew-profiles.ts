import { LanceError } from "../../namespace/errors.ts";
import { ownProfiles, type Profiles } from "../../server/admin/profiles.ts";
import type { WorkerThread } from "./worker-thread.ts";

/** Options of {@link createCrewProfiles}. */
export interface CrewProfilesOptions {
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
