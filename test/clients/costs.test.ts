import { costTests } from "../faults/costs/suite.ts";

costTests("many requests that cost too much", {
  expressions: Number(process.env["COST_EXPRESSIONS"] ?? 20_000),
  seed: Number(process.env["COST_SEED"] ?? Math.floor(Math.random() * 2 ** 31)),
});
