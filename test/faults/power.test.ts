import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { deserialize } from "node:v8";
import { afterAll, beforeAll, describe, test } from "vitest";
import { temporaryDirectory } from "../support/directory.ts";
import { createRandom } from "../support/random.ts";
import { repeats } from "../support/repeats.ts";
import { seedOf } from "../support/seed.ts";
import { check, expectedAfter, expectedAfterFailure, laidOut } from "./power/check.ts";
import type { Recording } from "./power/record.ts";
import { type Cut, replay } from "./power/replay.ts";
import { recordStart } from "./power/restart.ts";
import { SCENARIOS } from "./power/scenarios.ts";

/** Number of power cuts in each scenario; `.ci/run` has 8, and `POWER_SCHEDULES=1000` is the long run. */
const SCHEDULES = repeats("POWER_SCHEDULES", 2);

/** Equal seeds produce equal schedules. */
const SEED = seedOf("POWER_SEED");

/**
 * Number of recordings of each scenario with a failing sync, and number of those with a second cut during the start.
 */
const FAILS = Math.floor(SCHEDULES / 8);

/** Skips a test unless `POWER_SCHEDULES` is 8 or more. */
const LONG = { skip: FAILS === 0 };

/** Shares of unsynced changes that reach the disk: all, none, or some. */
const KEPT = [1, 0, 0.5, 0.5, 0.2, 0.8];

const program = fileURLToPath(new URL("./power/record.ts", import.meta.url));

async function recordingOf(path: string): Promise<Recording> {
  return deserialize(await readFile(`${path}.log`)) as Recording;
}

describe("a catalog whose power is cut", () => {
  let directory: { path: string; remove(): Promise<void> };
  beforeAll(async () => {
    directory = await temporaryDirectory();
    // The recording must come from a process that has ended.
    await promisify(execFile)(process.execPath, [program, directory.path, String(FAILS), String(SEED)]);
  });
  afterAll(() => directory.remove());

  for (const name of Object.keys(SCENARIOS)) {
    test(`keeps every acknowledged change and no other: ${name}`, async (t) => {
      await t.annotate(`POWER_SEED=${SEED} POWER_SCHEDULES=${SCHEDULES}`);
      const root = join(directory.path, name.replaceAll(/\W+/g, "-"));
      const recording = await recordingOf(root);
      const { log } = recording;
      const moments = log.entries.length + 1 - log.durable;
      for (let i = 0; i < SCHEDULES; i++) {
        const random = createRandom(SEED + 7919 * i);
        // A long run tests each moment in turn.
        const moment = SCHEDULES < moments ? random.below(moments) : i % moments;
        const cut: Cut = { at: log.durable + moment, kept: random.pick(KEPT) };
        replay(log, cut, random, root);
        await check(laidOut(root), name, expectedAfter(name, recording, cut)).catch((error: unknown) => {
          const happened = JSON.stringify(log.entries[cut.at - 1], (_, value) =>
            value instanceof Uint8Array ? value.byteLength : value,
          );
          assert.fail(
            `schedule ${i}, seed ${SEED}: ${JSON.stringify(cut)} after ${happened}: ${error instanceof Error ? error.stack : error}`,
          );
        });
      }
    });

    test(`keeps these changes when the power goes again during the start: ${name}`, LONG, async (t) => {
      await t.annotate(`POWER_SEED=${SEED} POWER_SCHEDULES=${SCHEDULES}`);
      const root = join(directory.path, name.replaceAll(/\W+/g, "-"));
      const recording = await recordingOf(root);
      const { log } = recording;
      for (let i = 0; i < FAILS; i++) {
        const random = createRandom(SEED + 104_729 * i);
        const cut: Cut = {
          at: log.durable + random.below(log.entries.length + 1 - log.durable),
          kept: random.pick(KEPT),
        };
        replay(log, cut, random, root);
        const start = await recordStart(root);
        const again: Cut = {
          at: start.durable + random.below(start.entries.length + 1 - start.durable),
          kept: random.pick(KEPT),
        };
        replay(start, again, random, root);
        // The start reads the storage's clock.
        const expected = expectedAfter(name, recording, cut);
        await check(laidOut(root), name, expected).catch((error: unknown) => {
          const cuts = JSON.stringify([cut, again]);
          assert.fail(`restart ${i}, seed ${SEED}, ${cuts}: ${error instanceof Error ? error.stack : error}`);
        });
      }
    });

    test(`acknowledges no change whose sync failed: ${name}`, LONG, async (t) => {
      await t.annotate(`POWER_SEED=${SEED} POWER_SCHEDULES=${SCHEDULES}`);
      const root = join(directory.path, name.replaceAll(/\W+/g, "-"));
      const clean = await recordingOf(root);
      for (let i = 0; i < FAILS; i++) {
        const recording = await recordingOf(`${root}.${i}`);
        const random = createRandom(SEED + i);
        const cut: Cut = { at: recording.log.entries.length, kept: random.pick([0, 0.5]) };
        replay(recording.log, cut, random, root);
        await check(laidOut(root), name, expectedAfterFailure(name, recording, clean)).catch(
          (error: unknown) => {
            assert.fail(
              `failure ${i}, seed ${SEED}, ${recording.refusals}: ${error instanceof Error ? error.stack : error}`,
            );
          },
        );
      }
    });
  }
});
