import { type CatalogObject, ONLY_DATABASE, type Siblings } from "../../namespace/authorizer.ts";
import type { Principal } from "../../namespace/call/principal.ts";
import { DEFAULT_DELIMITER, type Identifier } from "../../namespace/identifier.ts";
import { coversOperation, coversUser, namedObject, objectKey, objectKeys, type Policy } from "./policy.ts";
import { entityOf, keyOf, lineOf, membershipsOf, userOf } from "./schema.ts";

/** Policies that can cover accesses of a caller by an operation, and what they have decided. */
export interface Selection {
  /** Number of the policies. */
  readonly size: number;
  readonly everywhere: readonly Policy[];
  /** The others, by the keys of their objects. */
  readonly byObject: ReadonlyMap<string, readonly Policy[]>;
  /** Names of the objects that policies name, these or what is in them, by the beginning that the keys of siblings share. */
  readonly named: ReadonlyMap<string, ReadonlySet<string>>;
  readonly asksObject: boolean;
  readonly asksProperties: boolean;
  /** Objects beside the last one that no policy names: listings ask about one after the other. */
  family: Family | undefined;
  /** Decisions by the policies that cover the object, or by the object itself if a policy asks about it. */
  readonly decisions: Map<string, boolean>;
}

/** Objects of a kind in a namespace. */
interface Family extends Pick<CatalogObject, "kind" | "database"> {
  readonly parent: Identifier;
  /** The place of the objects that no policy names: the same policies cover them. */
  readonly place: string;
  /** Names of the others. */
  readonly named: ReadonlySet<string>;
  /** The others in order, with the decisions that are known. Default: not yet determined. */
  exceptions?: Pick<Siblings, "exceptions" | "known">;
}

/** Selects the policies that can cover an operation by a caller. */
export function select(
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
    size: covering.length,
    everywhere,
    byObject: byObject as Map<string, Policy[]>,
    named: namesOf(covering.flatMap((policy) => namedObject(policy) ?? [])),
    asksObject: covering.some(({ asksObject }) => asksObject),
    asksProperties: covering.some(asksProperties),
    family: undefined,
    decisions: new Map(),
  };
}

/** Returns the policies that cover an object. */
export function coveringOf({ everywhere, byObject }: Selection, object: CatalogObject): readonly Policy[] {
  if (byObject.size === 0) return everywhere;
  return [...everywhere, ...objectKeys(lineOf(object)).flatMap((key) => byObject.get(key) ?? [])];
}

/** Whether a policy that covers an object asks about its properties. */
export function needsProperties(selection: Selection, object: CatalogObject): boolean {
  return selection.asksProperties && coveringOf(selection, object).some(asksProperties);
}

function asksProperties(policy: Policy): boolean {
  return policy.asksProperties;
}

/** Returns the last names in the keys of objects, by what comes before them. */
function namesOf(keys: readonly string[]): ReadonlyMap<string, ReadonlySet<string>> {
  const names = new Map<string, Set<string>>();
  for (const key of keys) {
    const end = Math.max(key.lastIndexOf(DEFAULT_DELIMITER), key.indexOf("::") + 1) + 1;
    const [beginning, name] = [key.slice(0, end), key.slice(end)];
    names.set(beginning, (names.get(beginning) ?? new Set()).add(name));
  }
  return names;
}

/** Returns a text that is the same only for objects about which the same policies decide in the same way. */
export function placeIn(selection: Selection, object: CatalogObject): string {
  if (selection.asksObject) return pathOf(object);
  if (selection.byObject.size === 0) return "";
  const name = object.id.at(-1);
  if (name === undefined) return pathOf(object);
  const family = familyOf(selection, object);
  return isNamed(family, name) ? pathOf(object) : family.place;
}

/** Returns a text that only this object has; no {@link placeOf} begins like it. */
function pathOf({ kind, database = ONLY_DATABASE, id }: CatalogObject): string {
  // Callers may ask about names with any character.
  return JSON.stringify([kind, database, ...id]);
}

/** Whether policies may name an object of a family; a name with a delimiter could mean an object elsewhere. */
export function isNamed({ named }: Family, name: string): boolean {
  return named.has(name) || name.includes(DEFAULT_DELIMITER);
}

/** Returns the objects in the namespace of an object that no policy names. */
export function familyOf(selection: Selection, object: CatalogObject): Family {
  if (selection.family !== undefined && isIn(selection.family, object)) return selection.family;
  const { kind, database, id } = object;
  const parent = id.slice(0, -1);
  // No object has the empty name.
  const sibling = { kind, database, id: [...parent, ""] };
  const named = selection.named.get(keyOf(entityOf(sibling))) ?? new Set();
  selection.family = { kind, database, parent, place: placeOf(selection, sibling), named };
  return selection.family;
}

/** Returns the names of the other objects in the namespace of a family, in order, with the decisions that are known. */
export function exceptionsTo(family: Family): Pick<Siblings, "exceptions" | "known"> {
  family.exceptions ??= { exceptions: [...family.named].sort(), known: [] };
  return family.exceptions;
}

function isIn({ kind, database, parent }: Family, object: CatalogObject): boolean {
  return (
    kind === object.kind &&
    database === object.database &&
    parent.length === object.id.length - 1 &&
    parent.every((name, depth) => name === object.id[depth])
  );
}

/** Returns the keys of an object under which there are policies. Objects with the same ones have the same policies. */
function placeOf({ byObject }: Selection, object: CatalogObject): string {
  return JSON.stringify(objectKeys(lineOf(object)).filter((key) => byObject.has(key)));
}
