import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type GatewayProcess, startGateway } from "../clients/support/gateway.ts";
import { freePort } from "../support/free-port.ts";
import { createRandom } from "../support/random.ts";
import { seedOf } from "../support/seed.ts";
import { until } from "../support/until.ts";
import { type ClusterJob, jobOf, kill, processOf } from "./ray/cluster-processes.ts";
import { createWorks, type InterruptedWork, runCommand, runSession } from "./ray/interrupted-work.ts";
import { type RayHead, rayInterpreter, startRayHead } from "./ray-head.ts";

/** Whether each victim is killed at each moment of each work. */
const EVERYTHING = process.env["RAY_TESTS"] === "all";

const random = createRandom(seedOf("RAY_KILLS_SEED"));

let python: string;
let head: RayHead;
let root: string;
let files: string;
let options: readonly string[];
let gateway: GatewayProcess;

const place = {
  get python() {
    return python;
  },
  get root() {
    return root;
  },
  get files() {
    return files;
  },
  gateway: () => gateway,
};

const WORKS = createWorks(place);

/** Moments of a job, and how much later something dies at most, in milliseconds. */
const MOMENTS = {
  early: { laterMs: 1500, hasCome: async () => true },
  "in the middle": {
    laterMs: 150,
    hasCome: async (_: ClusterJob, { worker }: InterruptedWork) =>
      (await processOf(head, worker)) !== undefined,
  },
  late: {
    laterMs: 50,
    hasCome: async ({ step, hasReport }: ClusterJob) => step === "committing" || hasReport,
  },
} as const;

type Moment = keyof typeof MOMENTS;

/** Victims, and how each is killed. */
const VICTIMS = {
  worker: async (_, { worker }) =>
    kill((await processOf(head, worker)) ?? (await processOf(head, "ray::IDLE"))),
  driver: async (job) => kill(job?.driver),
  head: () => head.replace(),
  gateway: async () => {
    const gone = once(gateway.process, "exit");
    gateway.process.kill("SIGKILL");
    await gone;
    gateway = await startGateway(...options);
  },
} satisfies Record<string, (job: ClusterJob | undefined, work: InterruptedWork) => Promise<void>>;

type Victim = keyof typeof VICTIMS;

/** A death during work. */
interface Death {
  readonly work: string;
  readonly victim: Victim;
  readonly moment: Moment;
}

/** Deaths of the short run, which has a further one of another work. */
const USUAL: readonly Death[] = [
  ...["column", "compaction", "import"].flatMap((work): Death[] => [
    { work, victim: "worker", moment: "in the middle" },
    { work, victim: "head", moment: "in the middle" },
  ]),
  { work: "words", victim: "worker", moment: "in the middle" },
  { work: "column", victim: "driver", moment: "late" },
  { work: "compaction", victim: "driver", moment: "late" },
  { work: "compaction", victim: "gateway", moment: "late" },
];

function chooseDeaths(): readonly Death[] {
  const [names, victims, moments] = [
    WORKS.map(({ name }) => name),
    Object.keys(VICTIMS),
    Object.keys(MOMENTS),
  ];
  if (!EVERYTHING) {
    const others = names.filter((name) => USUAL.every(({ work }) => work !== name));
    const drawn: Death = {
      work: random.pick(others),
      victim: random.pick(["worker", "driver"]),
      moment: random.pick(moments as Moment[]),
    };
    return [...USUAL, drawn];
  }
  return (victims as Victim[]).flatMap((victim) =>
    (moments as Moment[]).flatMap((moment) => names.map((work): Death => ({ work, victim, moment }))),
  );
}

const DEATHS = chooseDeaths();
const GROUPS = [...Map.groupBy(DEATHS, ({ victim, moment }) => `${victim}|${moment}`).values()].map(
  (deaths) => ({
    victim: (deaths[0] as Death).victim,
    moment: (deaths[0] as Death).moment,
    deaths,
  }),
);

const tableOf = ({ work, victim, moment }: Death) => `${work}_${victim}_${moment.replaceAll(" ", "_")}`;
const workOf = (death: Death) => WORKS.find(({ name }) => name === death.work) as InterruptedWork;

beforeAll(async () => {
  python = await rayInterpreter();
  head = await startRayHead(python);
  root = mkdtempSync(join(tmpdir(), "lance-gateway-ray-"));
  files = mkdtempSync(join(tmpdir(), "lance-gateway-files-"));
  options = [
    ...[
      "--root",
      root,
      "--port",
      `${await freePort()}`,
      "--job-engine",
      "ray",
      "--ray-address",
      head.address,
    ],
    ...["--ray-token-file", head.tokenFile, "--ray-workers", "2", "--job-engine-min-rows", "1000"],
    ...["--import-location", files],
  ];
  gateway = await startGateway(...options);
  await runSession(place, "imports.py", "make", files);
  await runCommand(place, "import", join(files, "whole", "rows.parquet"), "here");
  const made = DEATHS.filter((death) => workOf(death).make === undefined);
  await runSession(place, "kills.py", "make", ...made.map(tableOf));
}, 900_000);

afterAll(async () => {
  await gateway?.close();
  await head?.close();
  for (const each of [root, files]) rmSync(each, { recursive: true, force: true });
}, 60_000);

interface ListedJob {
  readonly table: string;
  readonly job_type: string;
  readonly state: string;
}

/** Returns all jobs; none while the gateway does not answer. */
async function listJobs(): Promise<readonly ListedJob[]> {
  const request = { method: "POST", headers: { "content-type": "application/json" }, body: "{}" };
  const answer = await fetch(`${gateway.uri}/v1/jobs/list`, request).catch(() => undefined);
  return answer?.ok ? ((await answer.json()) as { jobs: ListedJob[] }).jobs : [];
}

/** Returns the states of the jobs that have worked on a table, once all of them have ended. */
async function statesOf(kind: string, table: string): Promise<readonly string[]> {
  let states: readonly string[] = [];
  await until(async () => {
    states = (await listJobs())
      .filter((job) => job.table === table && job.job_type === kind)
      .map(({ state }) => state);
    if (states.length > 0 && !states.includes("IN_PROGRESS")) return true;
    await sleep(200);
    return false;
  });
  return states;
}

/** Deaths that have happened. */
const happened: Death[] = [];

/** Kills something at a moment of work; if that is over before, right after. Returns what its caller gets. */
async function interrupt(death: Death): Promise<{ readonly answer: Promise<unknown> }> {
  const [work, table] = [workOf(death), tableOf(death)];
  happened.push(death);
  const { hasCome, laterMs } = MOMENTS[death.moment];
  await work.make?.(table);
  let isAnswered = false;
  const answer = Promise.resolve(work.start?.(table));
  const noteAnswer = () => {
    isAnswered = work.kind === "import_files";
  };
  void answer.then(noteAnswer, noteAnswer);
  let found: ClusterJob | undefined;
  await until(async () => {
    const now = await jobOf(head, root, { kind: work.kind, table: work.target?.(table) ?? table });
    const isOver = isAnswered || (found !== undefined && now === undefined);
    if (isOver) process.stderr.write(`${table}: over before the moment\n`);
    found = now ?? found;
    if (isOver || now === undefined) return isOver;
    return (death.victim !== "driver" || now.driver !== undefined) && (await hasCome(now, work));
  });
  await sleep(random.below(laterMs));
  await VICTIMS[death.victim](found, work);
  return { answer };
}

async function expectDone(death: Death): Promise<void> {
  const [{ kind, target, check }, table] = [workOf(death), tableOf(death)];
  const states = await statesOf(kind, target?.(table) ?? table);
  process.stderr.write(`${table}: ${states.join(", ")}\n`);
  await check(table);
  // Upkeep tries again.
  if (kind === "compact_table") expect(states).toContain("DONE");
  else expect(states, table).toEqual(["DONE"]);
}

it.each(GROUPS)(
  "does work of each kind once, and loses and doubles no row, if a $victim dies $moment",
  async ({ victim, deaths }) => {
    const later: Promise<unknown>[] = [];
    for (const death of deaths) {
      const { answer } = await interrupt(death);
      // The next process takes a job over after a minute. Its call may have ended with the former one.
      if (victim === "gateway") later.push(answer);
      else await answer.then(() => expectDone(death));
    }
    await Promise.allSettled(later);
    if (victim === "gateway") for (const death of deaths) await expectDone(death);
  },
  3_600_000,
);

it("leaves files that gc removes, and no table misses any", async () => {
  await gateway.close();
  const collect = async (...args: readonly string[]) => {
    const found = await runCommand(place, "gc", "--older-than", "0s", "--exclusive", "--json", ...args);
    const { leftovers } = JSON.parse(found) as { leftovers: { kind: string; action: string }[] };
    return leftovers.filter(({ kind }) => kind === "table file");
  };
  const removed = await collect("--delete", "--yes");
  process.stderr.write(`gc removed ${removed.length} files of tables\n`);
  assert.deepEqual(
    removed.filter(({ action }) => action !== "removed"),
    [],
  );
  assert.deepEqual(await collect(), []);
  gateway = await startGateway("--root", root, "--port", "0");
  for (const death of happened) await workOf(death).check(tableOf(death));
  await runSession(
    place,
    "kills.py",
    "files",
    ...happened.map((death) => workOf(death).target?.(tableOf(death)) ?? tableOf(death)),
  );
}, 900_000);
