import { test } from "node:test";
import { attackWithArrowBodies } from "../support/arrow-attack.ts";

/** The bodies are the same again with the same seed. */
const SEED = Number(process.env["ARROW_SEED"] ?? Date.now() % 1_000_000);

test("a server answers 30,000 mutated Arrow bodies with 200 or 4xx and goes on", async (t) => {
  t.diagnostic(`ARROW_SEED=${SEED}`);
  t.diagnostic(JSON.stringify(await attackWithArrowBodies(30_000, SEED)));
});
