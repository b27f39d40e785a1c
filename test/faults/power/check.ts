import assert from "node:assert/strict";
import type { ChangeContext } from "../../../src/backends/dir/batch/journal.ts";
import { type Disk, machineDisk } from "../../../src/backends/dir/format/local/disk.ts";
import { createLocalStore } from "../../../src/backends/dir/format/local/local-store.ts";
import { keyIn } from "../../../src/backends/dir/format/storage.ts";
import { findLeftovers } from "../../../src/backends/dir/maintenance/find-leftovers.ts";
import type { LeftoverKind } from "../../../src/backends/dir/maintenance/leftover.ts";
import type { OpenedStore } from "../../../src/backends/dir/stores/open-store.ts";
import type { Observation } from "./observe.ts";
import { statesAfter } from "./outcome.ts";
import type { Recording } from "./record.ts";
import type { Cut } from "./replay.ts";
import { SCENARIOS } from "./scenarios.ts";
import { observeWorld, openWorld, type Scenario, type World } from "./world.ts";

/** Leftovers that a loss of power may leave for `gc`. The start removes others, such as a note. */
const ALLOWED: ReadonlySet<LeftoverKind> = new Set<LeftoverKind>([
  "dropped table",
  "table file",
  "staged data",
  "unlisted data",
  "unfinished table",
  "manifest file",
  "temporary file",
  "job file",
  "work note",
  "upload",
  "probe",
]);

/** Versions from `startVersion` up to, and without, `endVersion`. */
interface VersionRange {
  readonly startVersion: bigint;
  readonly endVersion: bigint;
}

/** The states that a cut may leave. */
export interface Expected {
  /** The allowed observations: the acknowledged steps, with or without the step that was running. */
  readonly allowed: readonly Observation[];
  /** The versions of the unfinished step, which may exist and be broken, by the ids of their tables. */
  readonly broken: ReadonlyMap<string, VersionRange>;
  /** Leftovers for `gc` beyond those that every cut may leave. Default: none. */
  readonly leftovers?: readonly LeftoverKind[];
}

export function expectedAfter(name: string, { log, observations }: Recording, { at }: Cut): Expected {
  const marks = log.entries.slice(0, at).filter((entry) => entry.kind === "mark");
  const done = marks.filter(({ what }) => what === "done").length;
  const begun = marks.filter(({ what }) => what === "begun").length;
  const [before, after] = [observations[done], observations[begun]] as [Observation, Observation];
  if (begun === done) return { allowed: [before], broken: new Map() };
  const allowed = statesAfter("OutcomeUnknown", SCENARIOS[name] as Scenario, before, after);
  return { allowed, broken: brokenBy(name, before, after) };
}

/** Returns the states that a step with a failed sync may leave: an OutcomeUnknown says so itself. */
export function expectedAfterFailure(
  name: string,
  { observations, refusals }: Recording,
  clean: Recording,
): Expected {
  const step = refusals.length - 1;
  const [before, after] = [observations[step], clean.observations[step + 1]] as [Observation, Observation];
  const refusal = refusals[step];
  return {
    allowed: statesAfter(refusal, SCENARIOS[name] as Scenario, before, after),
    broken: refusal === "OutcomeUnknown" ? brokenBy(name, before, after) : new Map(),
  };
}

function brokenBy(name: string, before: Observation, after: Observation): ReadonlyMap<string, VersionRange> {
  const { byEngine = false } = SCENARIOS[name] as Scenario;
  const changed = Object.keys(after).filter(
    (id) => byEngine && id.startsWith("table ") && after[id] !== before[id],
  );
  const broken = changed.map((id) => {
    const range = { startVersion: newestIn(before[id]) + 1n, endVersion: newestIn(after[id]) + 1n };
    return [id.replace("table ", ""), range] as const;
  });
  return new Map(broken);
}

function newestIn(text = ""): bigint {
  return BigInt(/ v(?:\d+,)*(\d+) /.exec(text)?.[1] ?? 0);
}

/** Starts a gateway on the storage after the cut, and asserts that it is whole and works. */
export async function check(storage: OpenedStore, name: string, expected: Expected): Promise<void> {
  const { allowed, leftovers = [] } = expected;
  const scenario = SCENARIOS[name] as Scenario;
  const world = await openWorld(storage);
  try {
    const { client, context } = world;
    const seen = await observeWhole(world, scenario, expected);
    const texts = allowed.map(textOf);
    assert.ok(texts.includes(textOf(seen)), `${textOf(seen)}\nis none of\n${texts.join("\n")}`);
    for await (const leftover of findLeftovers(context, Number.POSITIVE_INFINITY)) {
      const { kind, path } = leftover;
      const isAllowed = ALLOWED.has(kind) || leftovers.includes(kind) || (await isEnded(context, path));
      assert.ok(isAllowed, `${kind} ${path} is left behind`);
      // The observation below must not miss it.
      if (kind === "table file") await leftover.remove();
    }
    await client.call("declareTable", "later");
    assert.deepEqual(await observeWorld(world, scenario), { ...seen, "table later": "declared {}" });
    await scenario.afterwards?.(world);
  } finally {
    await world.close();
  }
}

/** Deletes broken versions that were not acknowledged. */
async function observeWhole(
  world: World,
  scenario: Scenario,
  { allowed, broken }: Expected,
): Promise<Observation> {
  const seen = await observeWorld(world, scenario).catch((error: unknown) => {
    if (broken.size === 0) throw error;
  });
  const isWhole = seen !== undefined && allowed.map(textOf).includes(textOf(seen));
  if (seen !== undefined && (isWhole || broken.size === 0)) return seen;
  for (const [id, range] of broken)
    await world.client.call("batchDeleteTableVersions", id, { ranges: [range] });
  return observeWorld(world, scenario);
}

/** A disk without syncs: the storage under check is discarded with the test. */
const unsynced: Disk = { ...machineDisk, syncBytes: async () => {}, syncNames: async () => {} };

/** Opens the storage of a directory that was prepared for a check. */
export function laidOut(root: string): OpenedStore {
  return { store: createLocalStore("/", unsynced), root, engineOptions: {} };
}

function textOf(observation: Observation): string {
  return JSON.stringify(Object.entries(observation).sort());
}

/** Whether a file is the note of a change that has ended. It stays where an attempt to write it has no answer (docs/adr/0018). */
async function isEnded({ store, layout }: ChangeContext, path: string): Promise<boolean> {
  const bytes = await store.get(keyIn(layout.baseKey, path));
  return bytes !== undefined && Buffer.from(bytes).toString() === "ended";
}
