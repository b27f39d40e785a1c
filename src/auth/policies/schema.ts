import type { ActionType, SchemaJson } from "@cedar-policy/cedar-wasm/nodejs";
import { LanceDbService } from "../../gen/lance/gateway/v1/lancedb_pb.ts";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import { actionOf } from "../../namespace/actions.ts";
import { OBJECTS } from "../../namespace/objects.ts";
import { ROLE_NAMES, ROLES } from "../../namespace/principal.ts";
import type { ObjectKind } from "../../namespace/touch.ts";

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

/** Names of the operations by the kind of their object. */
export const OPERATION_KINDS: ReadonlyMap<string, ObjectKind> = new Map(
  [...LanceNamespaceService.methods, ...LanceDbService.methods].map(({ name, localName }) => [
    name,
    OBJECTS[localName as keyof typeof OBJECTS].kind,
  ]),
);

/** Returns the local name of an operation in the generated code. */
export function localNameOf(operation: string): string {
  return operation.charAt(0).toLowerCase() + operation.slice(1);
}

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
        [...OPERATION_KINDS].map(([name, kind]): [string, ActionType<string>] => [
          name,
          {
            memberOf: [{ id: actionOf({ localName: localNameOf(name) }) }],
            appliesTo: { principalTypes: ["User"], resourceTypes: [...RESOURCES[kind]] },
          },
        ]),
      ),
    },
  },
};
