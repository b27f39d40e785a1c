import { describe, test } from "vitest";
import { createRandom } from "../support/random.ts";
import { repeats } from "../support/repeats.ts";
import { seedOf } from "../support/seed.ts";
import { CHANGES, play } from "./foreign/schedule.ts";

/** Number of faults; `FOREIGN_CUTS=1000` is the long run. */
const COUNT = repeats("FOREIGN_CUTS", 10);

/** Equal seeds draw equal schedules. */
const SEED = seedOf("FOREIGN_SEED");

/** First schedule, to repeat one that failed. */
const FIRST = Number(process.env["FOREIGN_FIRST"] ?? 0);

describe("rows here, in front of a catalog and a bucket that fail, by gateways that are killed", () => {
  test("keep every acknowledged change once, and every file of a table", async (t) => {
    await t.annotate(`FOREIGN_SEED=${SEED} FOREIGN_CUTS=${COUNT}`);
    for (let i = FIRST; i < FIRST + COUNT / CHANGES; i++) {
      await play(createRandom(SEED + 7919 * i)).catch((error: unknown) => {
        throw new Error(`schedule ${i}, seed ${SEED}`, { cause: error });
      });
    }
  });
});
