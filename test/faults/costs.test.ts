import { repeats } from "../support/repeats.ts";
import { seedOf } from "../support/seed.ts";
import { costTests } from "./costs/suite.ts";

// The long run is in test/clients/costs.test.ts.
costTests("requests that cost too much", {
  expressions: repeats("COST_EXPRESSIONS", 200),
  numbers: repeats("COST_NUMBERS", 100),
  seed: seedOf("COST_SEED"),
});
