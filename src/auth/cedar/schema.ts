import type * as Library from "@cedar-policy/cedar-wasm/nodejs";
import type {
  ActionType,
  CedarValueJson,
  EntityJson,
  SchemaJson,
  TypeAndId,
} from "@cedar-policy/cedar-wasm/nodejs";
import {
  type Access,
  type CatalogObject,
  ONLY_DATABASE,
  type Properties,
} from "../../namespace/authorizer.ts";
import { type Principal, ROLE_NAMES, ROLES } from "../../namespace/call/principal.ts";
import { DEFAULT_DELIMITER } from "../../namespace/identifier.ts";
import { OPERATIONS, type OperationFacts } from "../../namespace/operations/operations.ts";
import type { ObjectKind } from "../../namespace/operations/touch.ts";

const TEXT = { type: "String" } as const;
const PLACE = { name: TEXT, path: TEXT, database: TEXT };

/** An object; its tags are its properties. */
const OBJECT = { shape: { type: "Record", attributes: PLACE }, tags: TEXT } as const;
const CHILD = { ...OBJECT, memberOfTypes: ["Namespace", "Database"] } as const;

/** Kinds of objects on which policies can allow an operation whose own object has a kind. */
const RESOURCES: Readonly<Record<ObjectKind, readonly ObjectKind[]>> = {
  Database: ["Database"],
  // The root of a database is a namespace, too.
  Namespace: ["Namespace", "Database"],
  Table: ["Table"],
};

/** Facts about the operations by their names in the contract. */
export const BY_NAME: ReadonlyMap<string, OperationFacts> = new Map(
  Object.values(OPERATIONS).map((facts) => [facts.method.name, facts]),
);

/** The schema that policies are checked against: every operation is an action, and a member of its kind. */
export const SCHEMA: SchemaJson<string> = {
  "": {
    entityTypes: {
      User: {
        memberOfTypes: ["Group", "Role"],
        shape: { type: "Record", attributes: { name: TEXT, by: TEXT } },
        // Claims.
        tags: { type: "Set", element: TEXT },
      },
      Group: {},
      Role: { enum: ROLE_NAMES as [string, ...string[]] },
      Database: OBJECT as never,
      Namespace: CHILD as never,
      Table: CHILD as never,
    },
    actions: {
      ...Object.fromEntries(ROLES.owner.map((action) => [action, {}])),
      ...Object.fromEntries(
        [...BY_NAME].map(([name, { action, kind }]): [string, ActionType<string>] => [
          name,
          {
            memberOf: [{ id: action }],
            appliesTo: { principalTypes: ["User"], resourceTypes: [...RESOURCES[kind]] },
          },
        ]),
      ),
    },
  },
};

/** Returns the key of an entity. */
export function keyOf({ type, id }: TypeAndId): string {
  return `${type}::${id}`;
}

/** Returns the entity of a caller. Different proofs may give different callers the same name, so that it holds the proof. */
export function userOf({ by, name }: Pick<Principal, "by" | "name">): TypeAndId {
  return { type: "User", id: `${by}:${name}` };
}

/** Returns the entities that a caller is a member of. */
export function membershipsOf({ role, groups }: Principal): TypeAndId[] {
  return [{ type: "Role", id: role }, ...groups.map((id) => ({ type: "Group", id }))];
}

/** Returns the entity of an object. */
export function entityOf({ kind, database, id }: CatalogObject): TypeAndId {
  if (id.length === 0) return { type: "Database", id: database ?? ONLY_DATABASE };
  const names = database === undefined ? id : [database, ...id];
  return { type: kind, id: names.join(DEFAULT_DELIMITER) };
}

/** Returns an object and everything that contains it, the object first. */
export function lineOf(object: CatalogObject): readonly TypeAndId[] {
  const { database, id } = object;
  const above = Array.from(id, (_, up) => id.slice(0, id.length - up - 1));
  return [entityOf(object), ...above.map((outer) => entityOf({ kind: "Namespace", database, id: outer }))];
}

/** Returns everything that the policies can ask about a request. @param properties those of the object */
export function entitiesOf(
  principal: Principal,
  { operation, action, object }: Access,
  properties: Properties,
): EntityJson[] {
  const line = lineOf(object);
  const database = object.database ?? ONLY_DATABASE;
  return [
    {
      uid: userOf(principal),
      attrs: { name: principal.name, by: principal.by },
      parents: membershipsOf(principal),
      tags: tagsOf(principal.claims),
    },
    { uid: { type: "Action", id: operation }, attrs: {}, parents: [{ type: "Action", id: action }] },
    ...line.map((uid, up) => {
      const path = object.id.slice(0, object.id.length - up);
      return {
        uid,
        attrs: { name: path.at(-1) ?? database, path: path.join(DEFAULT_DELIMITER), database },
        parents: line.slice(up + 1, up + 2),
        tags: up === 0 ? properties : {},
      };
    }),
  ];
}

/** Returns the claims that are texts, numbers, truth values or lists of them, each as a set of texts. */
function tagsOf(claims: Principal["claims"]): Record<string, CedarValueJson> {
  return Object.fromEntries(
    Object.entries(claims).flatMap(([name, claim]) => {
      const values = [claim].flat().filter((value) => SIMPLE.has(typeof value));
      return values.length === 0 ? [] : [[name, values.map(String)]];
    }),
  );
}

const SIMPLE: ReadonlySet<string> = new Set(["string", "number", "boolean"]);

/** The library that evaluates policies. */
export type Cedar = typeof Library;

/** Loads the library, which takes some 20 ms and 16 MiB of memory, so that only its users pay for it. */
export async function loadCedar(): Promise<Cedar> {
  return await import("@cedar-policy/cedar-wasm/nodejs");
}

/** Returns what the library says about a mistake, as a single line. */
export function textOf({ message, help }: Library.DetailedError, text = ""): string {
  return [message, help ? ` (${help})` : "", text].join("").replaceAll(/\s+/g, " ");
}
