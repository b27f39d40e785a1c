import type { TypeAndId } from "@cedar-policy/cedar-wasm/nodejs";
import type { Access, Decision, Properties } from "../../namespace/authorizer.ts";
import type { Principal } from "../../namespace/call/principal.ts";
import { type Cedar, textOf } from "./cedar.ts";
import { entitiesOf, lineOf, userOf } from "./entities.ts";
import type { Policy } from "./policy.ts";

/** Returns why a decision was made. */
export function reasonOf({ allowed, by, errors }: Decision): string {
  if (errors.length > 0) return `a policy failed: ${errors.join("; ")}`;
  if (by.length === 0) return "no policy permits it";
  return `${allowed ? "permitted" : "forbidden"} by ${by.join(", ")}`;
}

/** Decides by policies whose scopes cover an access. */
export type Evaluate = (
  policies: readonly Policy[],
  principal: Principal,
  access: Access,
  properties: Properties,
) => Decision;

/** Name of the parsed policies in the library, which never frees those of a name but replaces them. */
const PARSED = "policies";

/** The evaluator and the policies whose parsed form the library has. */
let parsed: string | undefined;
let evaluators = 0;

const NOT_WELL_FORMED = "the caller, the object or a property has a text with half a surrogate pair";

/**
 * Whether all texts are well-formed Unicode. The library throws at others, and each time loses a part of its stack for good: after some
 * 1,500 times it can decide nothing any more.
 */
function isWellFormed(value: unknown): boolean {
  if (typeof value === "string") return value.isWellFormed();
  if (typeof value !== "object" || value === null) return true;
  return Object.entries(value).every(([key, each]) => key.isWellFormed() && isWellFormed(each));
}

/** Creates the function that lets the library decide, which keeps the last set of policies of all evaluators parsed. */
export function createEvaluator(cedar: Cedar, all: readonly Policy[]): Evaluate {
  const numbers = new Map(all.map((policy, number) => [policy, String(number)]));
  evaluators += 1;
  const own = evaluators;

  function parse(policies: readonly Policy[]): void {
    const wanted = `${own}: ${policies.map((policy) => numbers.get(policy)).join()}`;
    if (wanted === parsed) return;
    parsed = undefined;
    const staticPolicies = Object.fromEntries(policies.map((policy) => [numbers.get(policy), policy.text]));
    const answer = cedar.preparsePolicySet(PARSED, { staticPolicies });
    if (answer.type === "failure") throw new Error(answer.errors.map((error) => textOf(error)).join("; "));
    parsed = wanted;
  }

  return (policies, principal, access, properties) => {
    if (policies.length === 0) return { allowed: false, by: [], errors: [] };
    parse(policies);
    const entities = entitiesOf(principal, access, properties);
    if (!isWellFormed(entities)) return { allowed: false, by: [], errors: [NOT_WELL_FORMED] };
    const answer = cedar.statefulIsAuthorized({
      principal: userOf(principal),
      action: { type: "Action", id: access.operation },
      resource: lineOf(access.object)[0] as TypeAndId,
      context: {},
      preparsedPolicySetId: PARSED,
      entities,
    });
    if (answer.type === "failure") {
      return { allowed: false, by: [], errors: answer.errors.map((error) => textOf(error)) };
    }
    const { decision, diagnostics } = answer.response;
    const nameOf = (id: string) => all[Number(id)]?.name ?? id;
    // A policy that fails could be one that forbids.
    const errors = diagnostics.errors.map(({ policyId, error }) => `${nameOf(policyId)}: ${textOf(error)}`);
    const allowed = decision === "allow" && errors.length === 0;
    return { allowed, by: diagnostics.reason.map(nameOf), errors };
  };
}
