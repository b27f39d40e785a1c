import assert from "node:assert/strict";
import { cp, mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, test } from "vitest";
import { createLocalStore } from "../../src/backends/dir/format/local/local-store.ts";
import { temporaryDirectory } from "../support/directory.ts";
import { createRandom } from "../support/random.ts";
import { repeats } from "../support/repeats.ts";
import { seedOf } from "../support/seed.ts";
import { check, laidOut } from "./power/check.ts";
import { createFaultyDisk, FAULTS, type Fault, type FaultCode } from "./power/faulty-disk.ts";
import type { Observation } from "./power/observe.ts";
import { outcomeOf, statesAfter } from "./power/outcome.ts";
import { SCENARIOS } from "./power/scenarios.ts";
import { observeWorld, openWorld, prepareAll, type Scenario } from "./power/world.ts";

/** Number of faults in each scenario; `DISK_FAULTS=300` is the long run. */
const COUNT = repeats("DISK_FAULTS", 2);

/** Equal seeds produce equal faults. */
const SEED = seedOf("DISK_SEED");

/** Approximate number of calls in a step that can report a failure. */
const CALLS = 16;

/** Opens a catalog on a disk that fails on request. */
async function openFaulty(root: string) {
  const faulty = createFaultyDisk();
  const world = await openWorld({ store: createLocalStore("/", faulty.disk), root, engineOptions: {} });
  return { world, faulty };
}

describe("a disk that fails", () => {
  let directory: { path: string; remove(): Promise<void> };
  beforeAll(async () => {
    directory = await temporaryDirectory();
  });
  afterAll(() => directory.remove());

  /** Plays a scenario without a fault; returns the observations before the first step and after each. */
  async function begin(scenario: Scenario, template: string): Promise<Observation[]> {
    const { world } = await openFaulty(template);
    await prepareAll(world);
    await scenario.prepare?.(world);
    const seen = [await observeWorld(world, scenario)];
    await cp(template, `${template}-begun`, { recursive: true });
    for (const step of scenario.steps) {
      await step(world).catch(() => {});
      seen.push(await observeWorld(world, scenario));
    }
    await world.close();
    return seen;
  }
  /** Plays the steps up to the one that meets a fault; returns its outcome. */
  async function play({ steps }: Scenario, last: number, fault: Fault, root: string) {
    const { world, faulty } = await openFaulty(root);
    for (const step of steps.slice(0, last)) await step(world).catch(() => {});
    faulty.arm(fault);
    const outcome = await outcomeOf(steps[last] as Scenario["steps"][number], world);
    faulty.disarm();
    await world.close();
    return outcome;
  }

  for (const [name, scenario] of Object.entries(SCENARIOS)) {
    test(`loses nothing that was acknowledged and keeps nothing that was refused: ${name}`, async (t) => {
      await t.annotate(`DISK_SEED=${SEED} DISK_FAULTS=${COUNT}`);
      const template = join(directory.path, name.replaceAll(/\W+/g, "-"));
      const root = `${template}-root`;
      await mkdir(template);
      const seen = await begin(scenario, template);
      for (let i = 0; i < COUNT; i++) {
        const random = createRandom(SEED + 7919 * i);
        const step = random.below(scenario.steps.length);
        const code = random.pick(Object.keys(FAULTS) as FaultCode[]);
        const fault: Fault = { code, at: random.below(CALLS), lasts: random.below(2) === 0 };
        const [earlier, later] = [seen[step], seen[step + 1]] as [Observation, Observation];
        await cp(`${template}-begun`, root, { recursive: true });
        try {
          const outcome = await play(scenario, step, fault, root);
          const allowed = statesAfter(outcome, scenario, earlier, later);
          await check(laidOut(root), name, { allowed, broken: new Map() });
        } catch (error) {
          const what = `fault ${i}, seed ${SEED}, step ${step}, ${JSON.stringify(fault)}`;
          assert.fail(`${what}: ${error instanceof Error ? error.stack : error}`);
        }
        await rm(root, { recursive: true });
      }
    });
  }
});
