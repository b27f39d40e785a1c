import type { CedarValueJson, EntityJson, TypeAndId } from "@cedar-policy/cedar-wasm/nodejs";
import type { Access, CatalogObject, Properties } from "../../namespace/authorizer.ts";
import { ONLY_DATABASE } from "../../namespace/authorizer.ts";
import type { Principal } from "../../namespace/call/principal.ts";
import { DEFAULT_DELIMITER } from "../../namespace/identifier.ts";

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
