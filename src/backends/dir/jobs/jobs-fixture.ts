import { setTimeout as sleep } from "node:timers/promises";
import type { TestContext } from "vitest";
import { createLocalStore } from "../format/local/local-store.ts";
import { silent } from "../test-support.ts";
import type { Job } from "./job.ts";
import { createJobs, type Jobs } from "./jobs.ts";
import type { JobWork } from "./running-jobs.ts";
import { createJobStore, JOBS_DIRECTORY, type JobStore } from "./store.ts";

/** The storage and the process share a clock in these tests. */
export const clock = { now: async () => Date.now() };

export const storeIn = (path: string) => createJobStore(createLocalStore(path), JOBS_DIRECTORY);

/** Returns a promise, and a function that resolves it. */
export function gate(): [promise: Promise<void>, open: () => void] {
  const { promise, resolve } = Promise.withResolvers<void>();
  return [promise, resolve];
}

export function jobsOn(
  t: TestContext,
  store: JobStore,
  works: Record<string, JobWork>,
  leaseMs = 60_000,
): Jobs {
  const jobs = createJobs({ store, clock, log: silent, leaseMs, maxRunning: 1 });
  for (const [kind, work] of Object.entries(works)) jobs.define(kind, work);
  jobs.start();
  t.onTestFinished(() => jobs.close());
  return jobs;
}

/** Returns a store that resolves `looks` after a number of further requests for the open jobs. */
export function counted(store: JobStore) {
  let count = 0;
  const looks = async (more: number) => {
    for (const until = count + more; count < until; ) await sleep(5);
  };
  const listOpen: JobStore["listOpen"] = (onDamaged) => {
    count++;
    return store.listOpen(onDamaged);
  };
  return { store: { ...store, listOpen }, looks };
}

export async function ended(jobs: Jobs, id: string): Promise<Job> {
  for (;;) {
    const job = await jobs.get(id);
    if (job?.finishedAt !== undefined) return job;
    await sleep(5);
  }
}

/** Runs until it is stopped. */
export const endless: JobWork = (_, signal) =>
  new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));

export const request = (kind: string) => ({ kind, table: ["a", "b"], spec: { column: "c" } });
