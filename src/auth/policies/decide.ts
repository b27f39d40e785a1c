import type { TypeAndId } from "@cedar-policy/cedar-wasm/nodejs";
import type { Access } from "../../namespace/authorizer.ts";
import type { Principal } from "../../namespace/principal.ts";
import type { Cedar } from "./cedar.ts";
import { keyOf, lineOf, membershipsOf, userOf } from "./entities.ts";
import { createEvaluator, type Decision } from "./evaluate.ts";
import { coversOperation, coversUser, objectKey, objectKeys, type Policy } from "./policy.ts";

/** Decides by a set of policies. */
export interface Decider {
  /** Returns the decision from memory, or makes and remembers it. */
  allows(principal: Principal, access: Access): boolean;
  /** Makes a decision and says how. */
  explain(principal: Principal, access: Access): Decision;
}

/** Maximum number of decisions, and of callers, that are remembered. */
const MAX_REMEMBERED = 100_000;

/** Policies that can cover accesses of a caller by an operation, and what they have decided. */
interface Selection {
  readonly everywhere: readonly Policy[];
  /** The others, by the keys of their objects. */
  readonly byObject: ReadonlyMap<string, readonly Policy[]>;
  readonly asksObject: boolean;
  /** Decisions by the policies that cover the object, or by the object itself if a policy asks about it. */
  readonly decisions: Map<string, boolean>;
}

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
  let ofCallers = new WeakMap<Principal, Map<string, Selection>>();
  let ofTexts = new Map<string, Map<string, Selection>>();
  let remembered = 0;

  function remember(): void {
    remembered += 1;
    if (remembered < MAX_REMEMBERED) return;
    ofCallers = new WeakMap();
    ofTexts = new Map();
    remembered = 0;
  }

  /** Returns the selections of a caller; two principals with the same facts are the same caller. */
  function selectionsOf(principal: Principal): Map<string, Selection> {
    const known = ofCallers.get(principal);
    if (known !== undefined) return known;
    const { by, name, role, groups, claims } = principal;
    const text = JSON.stringify([by, name, role, groups, claims]);
    const selections = ofTexts.get(text) ?? new Map<string, Selection>();
    if (selections.size === 0) remember();
    ofTexts.set(text, selections);
    ofCallers.set(principal, selections);
    return selections;
  }

  function selectionOf(principal: Principal, { operation, action }: Access): Selection {
    const selections = selectionsOf(principal);
    const known = selections.get(operation);
    if (known !== undefined) return known;
    remember();
    const selection = select(policies, principal, operation, action);
    selections.set(operation, selection);
    return selection;
  }

  function coveringOf({ everywhere, byObject }: Selection, line: readonly TypeAndId[]): readonly Policy[] {
    if (byObject.size === 0) return everywhere;
    return [...everywhere, ...objectKeys(line).flatMap((key) => byObject.get(key) ?? [])];
  }

  return {
    explain(principal, access) {
      const covering = coveringOf(selectionOf(principal, access), lineOf(access.object));
      return evaluate(covering, principal, access);
    },

    allows(principal, access) {
      const selection = selectionOf(principal, access);
      const { asksObject, byObject, decisions } = selection;
      const line = lineOf(access.object);
      const place = asksObject ? keyOf(line[0] as TypeAndId) : placeOf(byObject, line);
      const known = decisions.get(place);
      if (known !== undefined) return known;
      const { allowed, errors } = evaluate(coveringOf(selection, line), principal, access);
      if (errors.length > 0) failed(errors);
      remember();
      decisions.set(place, allowed);
      return allowed;
    },
  };
}

function select(
  policies: readonly Policy[],
  principal: Principal,
  operation: string,
  action: string,
): Selection {
  const user = keyOf(userOf(principal));
  const line = new Set([user, ...membershipsOf(principal).map(keyOf)]);
  const covering = policies.filter(
    (policy) => coversUser(policy, line, user) && coversOperation(policy, operation, action),
  );
  const byObject = Map.groupBy(covering, objectKey);
  const everywhere = byObject.get(undefined) ?? [];
  byObject.delete(undefined);
  return {
    everywhere,
    byObject: byObject as Map<string, Policy[]>,
    asksObject: covering.some(({ asksObject }) => asksObject),
    decisions: new Map(),
  };
}

/** Returns the keys of an object under which there are policies. Objects with the same ones have the same policies. */
function placeOf(byObject: Selection["byObject"], line: readonly TypeAndId[]): string {
  if (byObject.size === 0) return "";
  // Names have no line breaks.
  return objectKeys(line)
    .filter((key) => byObject.has(key))
    .join("\n");
}
