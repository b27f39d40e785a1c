import { costTests } from "../faults/costs/suite.ts";
import { seedOf } from "../support/seed.ts";

costTests("many requests that cost too much", {
  expressions: Number(process.env["COST_EXPRESSIONS"] ?? 20_000),
  seed: seedOf("COST_SEED"),
});
