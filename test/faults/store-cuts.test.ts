import assert from "node:assert/strict";
import { cp, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, test } from "vitest";
import { INTENTS_DIRECTORY } from "../../src/backends/dir/batch/journal.ts";
import type { LeftoverKind } from "../../src/backends/dir/maintenance/leftover.ts";
import { ended } from "../fixtures/dir/batch.ts";
import { temporaryDirectory } from "../support/directory.ts";
import { createRandom } from "../support/random.ts";
import { repeats } from "../support/repeats.ts";
import { seedOf } from "../support/seed.ts";
import { check } from "./power/check.ts";
import type { Observation } from "./power/observe.ts";
import { type Outcome, outcomeOf, statesAfter } from "./power/outcome.ts";
import { SCENARIOS } from "./power/scenarios.ts";
import { createSteppingStore, type StepFault } from "./power/stepping-store.ts";
import { observeWorld, openWorld, prepareAll, type Scenario } from "./power/world.ts";

/** Number of faults in each scenario; `STORE_CUTS=1000` tests each fault at least once. */
const COUNT = repeats("STORE_CUTS", 1);

/** Equal seeds produce equal faults. */
const SEED = seedOf("STORE_SEED");

/** Number of steps that most starts stay below. */
const START_STEPS = 16;

/** Scenarios whose notes remain for a while, because a bucket may still carry out an abandoned request later. */
const LEAVE_NOTES = new Set(["overwrite", "overwrite with other properties", "batch"]);

/** A fault in one of the changes of a scenario. */
interface Moment {
  readonly change: number;
  readonly fault: StepFault;
}

/** A scenario that was played without a fault. */
interface Played {
  /** The observations before the first change, and after each. */
  readonly seen: readonly Observation[];
  readonly moments: readonly Moment[];
}

/** Plays a scenario without a fault; `<template>-<change>` keeps the bucket before each change. */
async function playAll(scenario: Scenario, template: string): Promise<Played> {
  const { storage, arm, steps } = createSteppingStore(template);
  const preparing = await openWorld(storage);
  await prepareAll(preparing);
  await scenario.prepare?.(preparing);
  const seen = [await observeWorld(preparing, scenario)];
  await preparing.close();
  const moments: Moment[] = [];
  for (const [change, run] of scenario.steps.entries()) {
    await cp(template, `${template}-${change}`, { recursive: true });
    const world = await openWorld(storage);
    arm();
    await run(world).catch(() => {});
    const count = steps();
    seen.push(await observeWorld(world, scenario));
    await world.close();
    for (let at = 0; at < count; at++)
      for (const isDone of [false, true])
        for (const lasts of [false, true]) moments.push({ change, fault: { at, isDone, lasts } });
  }
  return { seen, moments };
}

/** Plays a change that meets a fault; returns its outcome. */
async function play(scenario: Scenario, { change, fault }: Moment, root: string) {
  const { storage, arm } = createSteppingStore(root);
  const world = await openWorld(storage);
  arm(fault);
  try {
    return await outcomeOf(scenario.steps[change] as Scenario["steps"][number], world);
  } finally {
    await world.close();
    await leave(root);
  }
}

/** Starts a process that ends at one of its first steps. */
async function startAndEnd(root: string, fault: StepFault): Promise<void> {
  const { storage, arm } = createSteppingStore(root);
  arm(fault);
  const world = await openWorld(storage).catch(() => undefined);
  await world?.close();
  await leave(root);
}

/** Makes the notes of this process look like those of an ended process. */
async function leave(root: string): Promise<void> {
  const directory = join(root, "data", INTENTS_DIRECTORY);
  for (const name of await readdir(directory).catch(() => [])) {
    if (!name.endsWith(".json")) continue;
    const note = await readFile(join(directory, name), "utf8");
    // The note of a change that has ended names nobody.
    if (note === "ended") continue;
    await writeFile(join(directory, name), JSON.stringify({ ...JSON.parse(note), owner: ended }));
  }
}

describe("a bucket whose process ends at a step, or that does not answer one", () => {
  let directory: { path: string; remove(): Promise<void> };
  beforeAll(async () => {
    directory = await temporaryDirectory();
  });
  afterAll(() => directory.remove());

  for (const [name, scenario] of Object.entries(SCENARIOS)) {
    test(`keeps every acknowledged change and no refused one: ${name}`, async (t) => {
      await t.annotate(`STORE_SEED=${SEED} STORE_CUTS=${COUNT}`);
      const template = join(directory.path, name.replaceAll(/\W+/g, "-"));
      const root = `${template}-root`;
      await mkdir(template);
      const { seen, moments } = await playAll(scenario, template);
      await t.annotate(`${moments.length} different faults`);
      const count = Math.min(COUNT, moments.length);
      for (let i = 0; i < count; i++) {
        const random = createRandom(SEED + 7919 * i);
        const moment = (count < moments.length ? random.pick(moments) : moments[i]) as Moment;
        const again: StepFault = {
          at: random.below(START_STEPS),
          isDone: random.below(2) === 0,
          lasts: true,
        };
        const endsAgain = random.below(3) === 0;
        const [earlier, later] = [seen[moment.change], seen[moment.change + 1]] as [Observation, Observation];
        await cp(`${template}-${moment.change}`, root, { recursive: true });
        let outcome: Outcome;
        try {
          outcome = await play(scenario, moment, root);
          if (endsAgain) await startAndEnd(root, again);
          // A client does not hear the refusals of a process that has ended, so the outcome of its last change is open.
          const isOpen =
            moment.fault.lasts ||
            outcome === "OutcomeUnknown" ||
            (outcome === "ServiceUnavailable" && scenario.repeatable?.includes(moment.change));
          const allowed = statesAfter(outcome, scenario, earlier, later, isOpen);
          const leftovers: LeftoverKind[] = LEAVE_NOTES.has(name) ? ["note"] : [];
          const { storage } = createSteppingStore(root);
          await check(storage, name, { allowed, broken: new Map(), leftovers });
        } catch (error) {
          const what = `fault ${i}, seed ${SEED}, ${JSON.stringify(moment)}, refused with ${outcome}, then ${endsAgain ? JSON.stringify(again) : "a start"}`;
          assert.fail(`${what}: ${error instanceof Error ? error.stack : error}`);
        }
        await rm(root, { recursive: true });
      }
    });
  }
});
