import type { ActionType, SchemaJson } from "@cedar-policy/cedar-wasm/nodejs";
import { ROLE_NAMES, ROLES } from "../../namespace/call/roles.ts";
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
