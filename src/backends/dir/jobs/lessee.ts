import { randomUUID } from "node:crypto";
import type { Job } from "./job.ts";

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
