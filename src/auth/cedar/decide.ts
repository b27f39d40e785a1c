import type { TypeAndId } from "@cedar-policy/cedar-wasm/nodejs";
import type { Access, Decision, Properties, Siblings } from "../../namespace/authorizer.ts";
import type { Principal } from "../../namespace/call/principal.ts";
import type { Policy } from "./policy.ts";
import { type Cedar, entitiesOf, lineOf, textOf, userOf } from "./schema.ts";
import {
  coveringOf,
  exceptionsTo,
  familyOf,
  isNamed,
  needsProperties,
  placeIn,
  type Selection,
  select,
} from "./selection.ts";

/** Decides by a set of policies. */
export interface Decider {
  /** Returns the decision from memory, or makes and remembers it. It comes later if a policy asks about properties. */
  allows(principal: Principal, access: Access): boolean | Promise<boolean>;
  /** Decides about all objects of a namespace; undefined if a policy asks about single ones. See Authorizer. */
  allowsSiblings(principal: Principal, access: Access): Siblings | undefined;
  /** Makes a decision about an object with properties, and says how. */
  explain(principal: Principal, access: Access, properties?: Properties): Decision;
}

/** Maximum memory of decisions, and of the policies and texts by which they are found, in bytes. */
const MAX_BYTES = 64 * 1024 * 1024;

/** Measured memory of an entry without its text, of a character, and of a policy that can cover the accesses of a caller, in bytes. */
const [ENTRY_BYTES, CHARACTER_BYTES, POLICY_BYTES] = [200, 2, 100];

/** Longest text of the properties of an object by which a decision is remembered, in characters. */
const MAX_PROPERTIES_TEXT = 1_000;

/**
 * Creates a decider. It evaluates only policies whose scope covers the access, and remembers a decision for all objects
 * that the same policies cover, unless one of them asks about the object.
 *
 * @param failed gets the failures of policies.
 */
export function createDecider(
  cedar: Cedar,
  policies: readonly Policy[],
  failed: (errors: readonly string[]) => void = () => {},
): Decider {
  const evaluate = createEvaluator(cedar, policies);
  const claimsOf = createClaimChoice(policies);
  let ofCallers = new WeakMap<Principal, Map<string, Selection>>();
  let ofTexts = new Map<string, Map<string, Selection>>();
  let remembered = 0;

  function remember(characters: number, covering = 0): void {
    remembered += ENTRY_BYTES + CHARACTER_BYTES * characters + POLICY_BYTES * covering;
    if (remembered < MAX_BYTES) return;
    ofCallers = new WeakMap();
    ofTexts = new Map();
    remembered = 0;
  }

  /**
   * Returns the selections of a caller. Two principals are the same caller if they differ only in claims that no policy asks about,
   * as every token does in its times.
   */
  function selectionsOf(principal: Principal): Map<string, Selection> {
    const known = ofCallers.get(principal);
    if (known !== undefined) return known;
    const { by, name, role, groups } = principal;
    const text = JSON.stringify([by, name, role, groups, claimsOf(principal)]);
    const selections = ofTexts.get(text) ?? new Map<string, Selection>();
    if (selections.size === 0) remember(text.length);
    ofTexts.set(text, selections);
    ofCallers.set(principal, selections);
    return selections;
  }

  function selectionOf(principal: Principal, { operation, action }: Access): Selection {
    const selections = selectionsOf(principal);
    const known = selections.get(operation);
    if (known !== undefined) return known;
    const selection = select(policies, principal, operation, action);
    remember(operation.length, selection.size);
    selections.set(operation, selection);
    return selection;
  }

  function decide(
    selection: Selection,
    principal: Principal,
    access: Access,
    properties: Properties,
  ): boolean {
    const covering = coveringOf(selection, access.object);
    const caller = { ...principal, claims: claimsOf(principal) };
    const { allowed, errors } = evaluate(covering, caller, access, properties);
    if (errors.length > 0) failed(errors);
    return allowed;
  }

  /** Returns the decision that is remembered under a key, or makes it. */
  function recall({ decisions }: Selection, key: string, make: () => boolean): boolean {
    const known = decisions.get(key);
    if (known !== undefined) return known;
    const allowed = make();
    remember(key.length);
    decisions.set(key, allowed);
    return allowed;
  }

  async function allowsByProperties(
    selection: Selection,
    principal: Principal,
    access: Access,
  ): Promise<boolean> {
    const properties = (await access.properties?.()) ?? {};
    const make = () => decide(selection, principal, access, properties);
    const text = JSON.stringify(Object.entries(properties).sort());
    if (text.length > MAX_PROPERTIES_TEXT) return make();
    // The JSON of a place has no line breaks.
    return recall(selection, `${placeIn(selection, access.object)}\n${text}`, make);
  }

  return {
    explain(principal, access, properties = {}) {
      const covering = coveringOf(selectionOf(principal, access), access.object);
      return evaluate(covering, principal, access, properties);
    },

    allowsSiblings(principal, access) {
      const selection = selectionOf(principal, access);
      if (selection.asksObject) return undefined;
      const family = familyOf(selection, access.object);
      if (isNamed(family, access.object.id.at(-1) ?? "")) return undefined;
      const allowed = recall(selection, family.place, () => decide(selection, principal, access, {}));
      return { allowed, ...exceptionsTo(family) };
    },

    allows(principal, access) {
      const selection = selectionOf(principal, access);
      const { object } = access;
      if (needsProperties(selection, object)) return allowsByProperties(selection, principal, access);
      return recall(selection, placeIn(selection, object), () => decide(selection, principal, access, {}));
    },
  };
}

/** Creates the function that returns the claims of a caller on which decisions by a set of policies can depend. */
function createClaimChoice(policies: readonly Policy[]): (principal: Principal) => Principal["claims"] {
  const tags = policies.map((policy) => policy.tags);
  if (tags.includes(undefined)) return ({ claims }) => claims;
  const names = new Set(tags.flatMap((each) => each ?? []));
  return ({ claims }) => Object.fromEntries(Object.entries(claims).filter(([name]) => names.has(name)));
}

/** Returns why a decision was made. */
export function reasonOf({ allowed, by, errors }: Decision): string {
  if (errors.length > 0) return `a policy failed: ${errors.join("; ")}`;
  if (by.length === 0) return "no policy permits it";
  return `${allowed ? "permitted" : "forbidden"} by ${by.join(", ")}`;
}

/** Decides by policies whose scopes cover an access. */
type Evaluate = (
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
function createEvaluator(cedar: Cedar, all: readonly Policy[]): Evaluate {
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
