import { createDecider } from "../../src/auth/cedar/decide.ts";
import { parsePolicies } from "../../src/auth/cedar/read-policies.ts";
import { loadCedar } from "../../src/auth/cedar/schema.ts";
import type { Access } from "../../src/namespace/authorizer.ts";
import type { Principal } from "../../src/namespace/call/principal.ts";
import { atOnce } from "../../src/runtime/pace.ts";
import { tableName } from "../catalog/work.ts";
import { type Rounds, roundsOf } from "../support/results.ts";
import { BENCH, POLICIES, policySet } from "./policy-set.ts";

const TABLES = 10_000;

const ACCESSES: readonly Access[] = Array.from({ length: TABLES }, (_, number) => ({
  operation: "DescribeTable",
  action: "describe",
  object: { kind: "Table", database: undefined, id: [BENCH, tableName(number)] },
}));

/** Times of a decision by 1,000 policies, in microseconds. */
export interface DecisionTimes {
  /** Of decisions that are remembered, for tables in turn. */
  readonly remembered: Rounds;
  /** Of the first one of a caller. */
  readonly first: Rounds;
}

/** Measures how long a set of 1,000 policies takes for a decision. */
export async function measureDecisions(rounds: number): Promise<DecisionTimes> {
  const cedar = await loadCedar();
  const { policies } = atOnce(parsePolicies(cedar, policySet(), "bench.cedar"));
  if (policies.length !== POLICIES) throw new Error(`${policies.length} policies`);
  const remembered: number[] = [];
  const newCallers: number[] = [];
  const { allows } = createDecider(cedar, policies);
  for (let round = 0; round <= rounds; round++) {
    const caller = callerOf(round);
    const first = microsOf(1, () => allows(caller, ACCESSES[0] as Access));
    microsOf(TABLES, (i) => allows(caller, ACCESSES[i] as Access));
    const again = microsOf(TABLES, (i) => allows(caller, ACCESSES[i] as Access));
    // The first round is for the compiler.
    if (round === 0) continue;
    newCallers.push(first);
    remembered.push(again);
  }
  return { remembered: roundsOf(remembered), first: roundsOf(newCallers) };
}

function callerOf(number: number): Principal {
  const facts = { by: "api-key", credentialId: "1", role: "none", claims: {} } as const;
  return { ...facts, name: `caller ${number}`, groups: [BENCH] };
}

/** Returns the mean time of a call, in microseconds. */
function microsOf(count: number, run: (index: number) => void): number {
  const started = performance.now();
  for (let index = 0; index < count; index++) run(index);
  return ((performance.now() - started) * 1000) / count;
}
