import type {
  ActionConstraint,
  EntityUidJson,
  PolicyJson,
  PrincipalConstraint,
  ResourceConstraint,
  TypeAndId,
} from "@cedar-policy/cedar-wasm/nodejs";
import { keyOf } from "./schema.ts";

/** A policy of a folder. */
export interface Policy {
  /** Its annotation `@id`, or its file and place in it, such as `team.cedar#2`. */
  readonly name: string;
  /** Its text, which is evaluated; the other forms serve to find it, and cannot hold every number. */
  readonly text: string;
  readonly json: PolicyJson;
  /** Whether its conditions ask about the object, so that objects of the same place may get different decisions. */
  readonly asksObject: boolean;
  /** Whether its conditions ask about properties of the object, which have to be looked up. */
  readonly asksProperties: boolean;
  /** Names of the tags that its conditions ask about: claims and properties; undefined if they may ask about any. */
  readonly tags: readonly string[] | undefined;
}

/** Creates a policy from what the library has parsed. */
export function policyOf(name: string, text: string, json: PolicyJson): Policy {
  const { conditions } = json;
  const [asksObject, asksProperties] = [mentions(conditions, "resource"), asksTags(conditions)];
  const tags = tagsIn(conditions);
  const named = tags.filter((tag) => tag !== undefined);
  return {
    name,
    text,
    json,
    asksObject,
    asksProperties,
    tags: named.length < tags.length ? undefined : named,
  };
}

/** Whether an expression asks about the tags of the object. */
function asksTags(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  return Object.entries(value).some(
    ([key, each]) => (TAG_OPERATORS.has(key) && mentions(each, "resource")) || asksTags(each),
  );
}

/** Returns the names of the tags that an expression asks about, undefined for one that it computes. */
function tagsIn(value: unknown): (string | undefined)[] {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, each]) =>
    TAG_OPERATORS.has(key) ? [textIn(each.right), ...tagsIn(each)] : tagsIn(each),
  );
}

/** Returns the text that an expression is; undefined for any other expression. */
function textIn(expression: { readonly Value?: unknown } | undefined): string | undefined {
  return typeof expression?.Value === "string" ? expression.Value : undefined;
}

const TAG_OPERATORS: ReadonlySet<string> = new Set(["hasTag", "getTag"]);

function mentions(value: unknown, variable: string): boolean {
  if (typeof value !== "object" || value === null) return false;
  if ((value as { Var?: unknown }).Var === variable) return true;
  return Object.values(value).some((each) => mentions(each, variable));
}

/** Whether the scope of a policy has a caller. @param line the keys of the caller and of what it is a member of. */
export function coversUser({ json }: Policy, line: ReadonlySet<string>, user: string): boolean {
  const constraint: PrincipalConstraint = json.principal;
  switch (constraint.op) {
    case "All":
      return true;
    case "==":
      return user === entityKey(constraint);
    case "in":
      return line.has(entityKey(constraint));
    case "is":
      return (
        constraint.entity_type === "User" &&
        (constraint.in === undefined || line.has(entityKey(constraint.in)))
      );
  }
}

/** Whether the scope of a policy has an operation of a kind. */
export function coversOperation({ json }: Policy, operation: string, action: string): boolean {
  const constraint: ActionConstraint = json.action;
  if (constraint.op === "All") return true;
  const ids = (
    "entities" in constraint ? constraint.entities : [(constraint as { entity: EntityUidJson }).entity]
  ).map((entity) => plain(entity).id);
  return ids.includes(operation) || (constraint.op === "in" && ids.includes(action));
}

/** Returns the key under which a policy covers objects; undefined for a policy on every object. See {@link objectKeys}. */
export function objectKey({ json }: Policy): string | undefined {
  const constraint: ResourceConstraint = json.resource;
  switch (constraint.op) {
    case "All":
      return undefined;
    case "==":
      return `== ${entityKey(constraint)}`;
    case "in":
      return `in ${entityKey(constraint)}`;
    case "is": {
      const { entity_type: type, in: within } = constraint;
      return within === undefined ? `is ${type}` : `is ${type} in ${entityKey(within)}`;
    }
  }
}

/** Returns the key of the object that the scope of a policy names; undefined if it names none. */
export function namedObject({ json }: Policy): string | undefined {
  const constraint: ResourceConstraint = json.resource;
  switch (constraint.op) {
    case "All":
      return undefined;
    case "is":
      return constraint.in && entityKey(constraint.in);
    default:
      return entityKey(constraint);
  }
}

/** Returns the keys of the policies that cover an object. @param line the object and everything that contains it. */
export function objectKeys(line: readonly TypeAndId[]): string[] {
  const [own] = line;
  if (own === undefined) return [];
  const keys = [`== ${keyOf(own)}`, `is ${own.type}`];
  for (const entity of line) {
    const key = keyOf(entity);
    keys.push(`in ${key}`, `is ${own.type} in ${key}`);
  }
  return keys;
}

/** Returns the key of the entity in a constraint. Templates, which have slots instead, are refused when they are read. */
function entityKey(constraint: { entity: EntityUidJson } | { slot: string }): string {
  if ("slot" in constraint) throw new Error("a policy must not have slots");
  return keyOf(plain(constraint.entity));
}

function plain(entity: EntityUidJson): TypeAndId {
  return "__entity" in entity ? entity.__entity : entity;
}
