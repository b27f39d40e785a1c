import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { serialize } from "node:v8";
import { createLocalStore } from "../../../src/backends/dir/format/local/local-store.ts";
import { type ErrorName, LanceError } from "../../../src/namespace/errors.ts";
import { createRandom } from "../../support/random.ts";
import type { Log } from "./log.ts";
import type { Observation } from "./observe.ts";
import { createRecorder } from "./recorder.ts";
import { SCENARIOS } from "./scenarios.ts";
import { DifferentOutcomes } from "./side-by-side.ts";
import { observeWorld, openWorld, prepareAll, type Scenario } from "./world.ts";

/** Maximum number of syncs in most scenarios. */
const MAX_SYNCS = 45;

/** The recording of a scenario. */
export interface Recording {
  readonly log: Log;
  /** The states before the first step and after each step. */
  readonly observations: readonly Observation[];
  /** The refusal of each step; undefined for an acknowledged step. */
  readonly refusals: readonly (ErrorName | undefined)[];
}

/** Plays a scenario in a new directory, up to the step in which a sync failed. */
async function record(name: string, root: string, failingSync?: number): Promise<Recording> {
  const scenario = SCENARIOS[name] as Scenario;
  mkdirSync(root, { recursive: true });
  const { disk, entries, look, failSync, hasFailed } = createRecorder(root);
  const world = await openWorld({ store: createLocalStore("/", disk), root, engineOptions: {} });
  await prepareAll(world);
  await scenario.prepare?.(world);
  look();
  const durable = entries.length;
  const observations = [await observeWorld(world, scenario)];
  const refusals: (ErrorName | undefined)[] = [];
  if (failingSync !== undefined) failSync(failingSync);
  for (const [step, run] of scenario.steps.entries()) {
    entries.push({ kind: "mark", what: "begun", step });
    refusals.push(await run(world).then(() => undefined, kindOf));
    look();
    entries.push({ kind: "mark", what: "done", step });
    if (failingSync !== undefined && hasFailed()) break;
    observations.push(await observeWorld(world, scenario));
  }
  const log = { entries: [...entries], durable };
  await world.close();
  return { log, observations, refusals };
}

function kindOf(error: unknown): ErrorName {
  if (error instanceof LanceError) return error.kind;
  if (error instanceof DifferentOutcomes) return kindOf(error.cause);
  throw error;
}

const [directory = "", fails = "0", seed = "0"] = process.argv.slice(2);
for (const name of Object.keys(SCENARIOS)) {
  const root = join(directory, name.replaceAll(/\W+/g, "-"));
  writeFileSync(`${root}.log`, serialize(await record(name, root)));
  for (let i = 0; i < Number(fails); i++) {
    rmSync(root, { recursive: true });
    const index = createRandom(Number(seed) + 7919 * i).below(MAX_SYNCS);
    writeFileSync(`${root}.${i}.log`, serialize(await record(name, root, index)));
  }
}
