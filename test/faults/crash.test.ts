import assert from "node:assert/strict";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, test } from "vitest";
import type { LanceClient } from "../support/client.ts";
import { temporaryDirectory } from "../support/directory.ts";
import { createGrpcClient } from "../support/grpc-client.ts";
import { manifestIds } from "../support/manifest-rows.ts";
import { type Program, startProgram } from "../support/program.ts";
import { createRandom } from "../support/random.ts";
import { repeats } from "../support/repeats.ts";
import { seedOf } from "../support/seed.ts";
import { createWorker } from "./crash/worker.ts";

/** Number of times that the server is killed; `CRASH_ROUNDS=50` is the long run. */
const ROUNDS = repeats("CRASH_ROUNDS", 4);

/** Equal seeds draw equal choices, apart from the times at which the server is killed. */
const SEED = seedOf("CRASH_SEED");

const WORKERS = 6;

/** Number of worker threads of the server; `CRASH_THREADS=2` takes calls through several catalogs. */
const THREADS = repeats("CRASH_THREADS", 1);

/** Works on one item after the other. */
async function inTurn<T>(
  items: readonly T[],
  work: (item: T, index: number) => Promise<void>,
): Promise<void> {
  for (const [i, item] of items.entries()) await work(item, i);
}

const GC_OPTIONS = ["--older-than", "0s", "--exclusive", "--json"];

describe("a server that is killed", () => {
  let directory: { path: string; remove(): Promise<void> };
  beforeAll(async () => {
    directory = await temporaryDirectory();
  });
  afterAll(() => directory.remove());

  /** Starts a server and a client for each worker, until the test file ends. */
  async function startWith(root: string): Promise<{ program: Program; clients: LanceClient[] }> {
    const options = ["--root", root, "--port", "0", "--log-level", "error"];
    const program = startProgram("serve", ...options, "--workers", String(THREADS));
    const port = await program.listening();
    const protocols = Array.from({ length: WORKERS }, () => createGrpcClient(port));
    void program.ended.then(() => {
      for (const { close } of protocols) close();
    });
    return { program, clients: protocols.map(({ client }) => client) };
  }

  /**
   * Removes the leftovers of the crashes, until another look finds only files that were put aside on purpose. Files
   * that a run changes by resolving a note are too young for that run.
   */
  async function assertTidyAfterGc(root: string): Promise<void> {
    const gc = async (...more: readonly string[]) => {
      const { code, stdout, stderr } = await startProgram("gc", ...GC_OPTIONS, "--root", root, ...more).ended;
      assert.equal(code, 0, stderr);
      const { leftovers } = JSON.parse(stdout) as { leftovers: { kind: string }[] };
      return leftovers.filter(({ kind }) => kind !== "unlisted data");
    };
    await gc("--delete");
    if ((await gc()).length > 0) await gc("--delete");
    assert.deepEqual(await gc(), []);
  }

  test(`keeps every change that it acknowledged (${ROUNDS} rounds, seed ${SEED})`, async (t) => {
    const random = createRandom(SEED);
    const root = join(directory.path, "root");
    const workers = Array.from({ length: WORKERS }, (_, i) =>
      createWorker({ name: `w${i}` }, createRandom(SEED + 1 + i)),
    );
    for (let round = 0; round < ROUNDS; round++) {
      const { program, clients } = await startWith(root);
      t.onTestFinished(() => void program.child.kill("SIGKILL"));
      await inTurn(workers, (worker, i) => worker.check(clients[i] as LanceClient));
      const work = workers.map((worker, i) => worker.run(clients[i] as LanceClient));
      await Promise.race([sleep(random.below(600)), ...work]);
      program.child.kill("SIGKILL");
      await Promise.all(work);
      await program.ended;
      const ids = await manifestIds(join(root, "data"));
      assert.equal(new Set(ids).size, ids.length, "an object has two rows");
    }
    await assertTidyAfterGc(root);
    const { program, clients } = await startWith(root);
    t.onTestFinished(() => void program.child.kill("SIGKILL"));
    await inTurn(workers, (worker, i) => worker.check(clients[i] as LanceClient));
    await t.annotate(
      `${workers.reduce((sum, { acknowledged }) => sum + acknowledged, 0)} calls acknowledged`,
    );
  });
});
