import type { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { getHeapSnapshot } from "node:v8";
import { LanceError } from "../../namespace/errors.ts";

/** Profiles of the threads of a process; a worker is named by its number from 1, and the main thread by none. */
export interface Profiles {
  /**
   * Returns a snapshot of a thread's heap, in the format of Chromium's tools. The thread stops meanwhile.
   *
   * @throws LanceError InvalidInput for a worker that does not exist.
   */
  heapSnapshot(worker?: number): Promise<Readable>;
  /**
   * Returns what a thread has computed for some time, in the format of Chromium's tools.
   *
   * @throws LanceError InvalidInput for a worker that does not exist.
   */
  cpuProfile(milliseconds: number, worker?: number): Promise<string>;
}

/** Profiles of a process with a single thread. */
export const ownProfiles: Profiles = {
  async heapSnapshot(worker) {
    refuseWorker(worker);
    return getHeapSnapshot();
  },
  async cpuProfile(milliseconds, worker) {
    refuseWorker(worker);
    return profileThread(milliseconds);
  },
};

/** Returns what this thread computes for some time. */
export async function profileThread(milliseconds: number): Promise<string> {
  // Only operators who profile need the module.
  const { Session } = await import("node:inspector/promises");
  const session = new Session();
  session.connect();
  try {
    await session.post("Profiler.enable");
    await session.post("Profiler.start");
    await sleep(milliseconds);
    const { profile } = await session.post("Profiler.stop");
    return JSON.stringify(profile);
  } finally {
    session.disconnect();
  }
}

function refuseWorker(worker: number | undefined): void {
  if (worker !== undefined) throw new LanceError("InvalidInput", "the gateway runs without workers");
}
