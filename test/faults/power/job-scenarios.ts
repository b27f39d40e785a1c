import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { keyIn } from "../../../src/backends/dir/format/storage.ts";
import type { Job } from "../../../src/backends/dir/jobs/job.ts";
import { createJobs, type Jobs } from "../../../src/backends/dir/jobs/jobs.ts";
import { createJobStore, JOBS_DIRECTORY } from "../../../src/backends/dir/jobs/store.ts";
import { isLanceError, LanceError } from "../../../src/namespace/errors.ts";
import { silent } from "../../fixtures/dir/directory-backend.ts";
import type { Observation } from "./observe.ts";
import type { Scenario, World } from "./world.ts";

const KIND = "declare";
const MADE = "n$made";

/** A job of a process that ended before the job began. */
const LEFT: Job = {
  id: "00000000-0000-4000-8000-000000000000",
  kind: KIND,
  table: ["n", "made"],
  spec: {},
  state: "queued",
  createdAt: 1,
  attempts: 1,
  lease: { owner: "ended", until: 2 },
};

const storeOf = ({ store, layout }: World["context"]) =>
  createJobStore(store, keyIn(layout.baseKey, JOBS_DIRECTORY));

/** Returns the jobs of a process; their work is to declare a table. */
function jobsOf({ context, client }: World, retryMs: number): Jobs {
  const { clock } = context;
  const jobs = createJobs({ store: storeOf(context), clock, log: silent, leaseMs: 100, retryMs });
  jobs.define(KIND, async () => {
    await client.call("declareTable", MADE).catch((error: unknown) => {
      if (!isLanceError(error, "TableAlreadyExists")) throw error;
    });
    return { made: MADE };
  });
  return jobs;
}

/** Maximum number of looks for the beginning of a job. */
const MAX_LOOKS = 400;

/** Waits for a job to succeed. @throws LanceError OutcomeUnknown when no process works on it */
async function succeeded(jobs: Jobs, id: string): Promise<void> {
  let [wasActive, isActive] = [false, false];
  for (let looks = 0; wasActive ? isActive : looks < MAX_LOOKS; looks++) {
    await sleep(5);
    isActive = jobs.active().some((job) => job.id === id);
    wasActive ||= isActive;
  }
  if ((await jobs.get(id))?.state === "succeeded") return;
  throw new LanceError("OutcomeUnknown", "the job has not succeeded");
}

async function withJobs(world: World, retryMs: number, work: (jobs: Jobs) => Promise<void>): Promise<void> {
  const jobs = jobsOf(world, retryMs);
  try {
    await work(jobs);
  } finally {
    await jobs.close();
  }
}

const jobScenario: Omit<Scenario, "steps"> = {
  async observe({ context }): Promise<Observation> {
    const jobs = await storeOf(context).list(() => {});
    const states = jobs.map(({ finishedAt, state }) => (finishedAt === undefined ? "open" : state));
    return { jobs: states.join() };
  },
  between(before, after) {
    if (before["jobs"] === after["jobs"]) return [];
    return [
      // A storage that refuses to record the beginning of a job ends the job.
      { ...before, jobs: "failed" },
      { ...before, jobs: "open" },
      { ...after, jobs: "open" },
    ];
  },
  /** The next process finishes every open job. */
  async afterwards(world) {
    await withJobs(world, 0, async (jobs) => {
      const found = await jobs.list();
      const open = found.filter(({ finishedAt }) => finishedAt === undefined);
      jobs.start();
      for (const { id } of open) await succeeded(jobs, id);
      const { tables } = await world.client.call("listTables", "n", { includeDeclared: true });
      const states = (await jobs.list()).map(({ state }) => state);
      assert.equal(tables.includes("made"), states.includes("succeeded"));
      const ended = found.map(({ state }) => (state === "failed" ? "failed" : "succeeded"));
      assert.deepEqual(states, ended);
    });
  },
};

export const JOB_SCENARIOS: Readonly<Record<string, Scenario>> = {
  "a job that is submitted and done": {
    ...jobScenario,
    steps: [
      (world) => withJobs(world, 60_000, async (jobs) => succeeded(jobs, (await jobs.submit(LEFT)).id)),
      ({ client }) => client.call("dropTable", "r"),
    ],
  },
  "a job that is taken over": {
    ...jobScenario,
    prepare: ({ context }) => storeOf(context).put(LEFT),
    steps: [
      (world) =>
        withJobs(world, 60_000, async (jobs) => {
          jobs.start();
          await succeeded(jobs, LEFT.id);
        }),
    ],
  },
};
