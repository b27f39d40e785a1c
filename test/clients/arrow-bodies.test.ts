import { test } from "vitest";
import { attackWithArrowBodies } from "../support/arrow-attack.ts";
import { seedOf } from "../support/seed.ts";

/** The bodies are the same again with the same seed. */
const SEED = seedOf("ARROW_SEED");

test("a server answers 30,000 mutated Arrow bodies with 200 or 4xx and goes on", async (t) => {
  await t.annotate(`ARROW_SEED=${SEED}`);
  await t.annotate(JSON.stringify(await attackWithArrowBodies(30_000, SEED)));
});
