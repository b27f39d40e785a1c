import { describe, test } from "vitest";
import { createRandom } from "../support/random.ts";
import { repeats } from "../support/repeats.ts";
import { seedOf } from "../support/seed.ts";
import { type Faults, play } from "./foreign/schedule.ts";

/** Number of schedules; `FOREIGN_CUTS=1000` is the long run. */
const COUNT = repeats("FOREIGN_CUTS", 2);

/** Equal seeds draw equal schedules. */
const SEED = seedOf("FOREIGN_SEED");

/** First schedule, to repeat one that failed. */
const FIRST = Number(process.env["FOREIGN_FIRST"] ?? 0);

/** Number of schedules at a time: each of them waits for repeated requests most of the time. */
const ABREAST = 4;

describe("rows here, in front of a catalog and a bucket that fail, by gateways that are killed", () => {
  test("keep every acknowledged change once, and every file of a table", async (t) => {
    await t.annotate(`FOREIGN_SEED=${SEED} FOREIGN_CUTS=${COUNT}`);
    const met: Faults = new Map();
    let next = FIRST;
    async function playOn(): Promise<void> {
      while (next < FIRST + COUNT) {
        const schedule = next;
        next += 1;
        await play(createRandom(SEED + 7919 * schedule), met).catch((error: unknown) => {
          next = Number.POSITIVE_INFINITY;
          throw new Error(`schedule ${schedule}, seed ${SEED}`, { cause: error });
        });
      }
    }
    const played = await Promise.allSettled(Array.from({ length: ABREAST }, playOn));
    await t.annotate(`faults met: ${[...met].map(([kind, count]) => `${count} ${kind}`).join(", ")}`);
    for (const each of played) if (each.status === "rejected") throw each.reason;
  });
});
