import { randomUUID } from "node:crypto";
import type { Logger } from "pino";
import type { StorageClock } from "../format/storage-clock.ts";
import type { Job } from "./job.ts";
import type { JobRoom } from "./room.ts";
import type { JobStore } from "./store.ts";

/** Options of the jobs of a catalog. */
export interface JobsOptions {
  readonly store: JobStore;
  /** Provides all times of jobs, so that processes with different clocks agree on leases. */
  readonly clock: StorageClock;
  readonly log: Logger;
  /** Maximum number of jobs that run concurrently in this process, and of each kind for which it waits on a cluster. Default: 2. */
  readonly maxRunning?: number | undefined;
  /** Room that the jobs share with those of other stores. Default: room of their own for `maxRunning` jobs. */
  readonly room?: JobRoom | undefined;
  /**
   * Maximum number of jobs that run and wait in this process; each costs requests while it waits. A caller has at most as many as are
   * left for the others. Default: 1,000.
   */
  readonly maxWaiting?: number | undefined;
  /** Duration of a lease, in milliseconds. Default: 30,000. */
  readonly leaseMs?: number | undefined;
  /** Pause since the last start of a job whose process has died, in milliseconds. Default: 60,000. */
  readonly retryMs?: number | undefined;
  /** How long finished jobs are kept, in milliseconds. Default: 7 days. */
  readonly keepMs?: number | undefined;
}

/** A process that takes leases on jobs. */
export interface Lessee {
  /** The process, by a name that no other one has. */
  readonly owner: string;
  /** Returns a lease that begins now. */
  lease(now: number): NonNullable<Job["lease"]>;
}

/** Creates the lessee of this process, with leases of that many milliseconds. */
export function createLessee(leaseMs: number): Lessee {
  const owner = randomUUID();
  return { owner, lease: (now) => ({ owner, until: now + leaseMs }) };
}
