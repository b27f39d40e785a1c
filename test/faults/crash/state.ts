import assert from "node:assert/strict";
import { basename } from "node:path";
import type { LanceClient } from "../../support/client.ts";

/** A client's knowledge of one of its objects. */
export type Known =
  | { readonly kind: "namespace"; readonly properties: Readonly<Record<string, string>> }
  | {
      readonly kind: "table";
      readonly properties: Readonly<Record<string, string>>;
      /** Undefined for a table that is only declared. */
      readonly rows: number | undefined;
    };

/** The objects of one client by their joined names; no other client changes them. */
export type State = ReadonlyMap<string, Known>;

/** The place of a client's objects: its own namespace, and names in the root that begin with that namespace's name. */
export interface Domain {
  readonly name: string;
}

/** Returns the names of an object id. */
export const namesOf = (objectId: string): string[] => objectId.split("$");

/** Whether two states are equal. */
export function sameState(a: State, b: State): boolean {
  return describeState(a) === describeState(b);
}

/** Formats a state as text, in order, for messages and comparisons. */
export function describeState(state: State): string {
  const sorted = [...state].sort(([a], [b]) => (a < b ? -1 : 1));
  return sorted
    .map(([id, { kind, properties, ...rest }]) => {
      const entries = Object.entries(properties).sort(([a], [b]) => (a < b ? -1 : 1));
      const rows = "rows" in rest ? ` ${rest.rows ?? "declared"}` : "";
      return `${id} ${kind}${rows} ${JSON.stringify(entries)}`;
    })
    .join("\n");
}

/** Reads the state of a domain from a server, call by call. */
export async function observe(client: LanceClient, { name }: Domain): Promise<State> {
  const state = new Map<string, Known>();
  const own = (names: readonly string[]) => names.filter((each) => each.startsWith(name));
  const { tables } = await client.listTables({});
  for (const table of unique(own(tables))) state.set(table, await observeTable(client, [table]));
  const { namespaces } = await client.listNamespaces({});
  for (const namespace of unique(own(namespaces))) await observeNamespace(client, [namespace], state);
  return state;
}

async function observeNamespace(client: LanceClient, id: string[], state: Map<string, Known>): Promise<void> {
  const { properties } = await client.describeNamespace({ id });
  state.set(id.join("$"), { kind: "namespace", properties });
  const [{ tables }, { namespaces }] = await Promise.all([
    client.listTables({ id }),
    client.listNamespaces({ id }),
  ]);
  for (const table of unique(tables)) {
    state.set([...id, table].join("$"), await observeTable(client, [...id, table]));
  }
  for (const namespace of unique(namespaces)) await observeNamespace(client, [...id, namespace], state);
}

async function observeTable(client: LanceClient, id: string[]): Promise<Known> {
  const { properties, isOnlyDeclared } = await client.describeTable({ id, checkDeclared: true });
  const rows = isOnlyDeclared ? undefined : Number((await client.countTableRows({ id })).count);
  return { kind: "table", properties, rows };
}

/** Returns the location of a table relative to the base directory. */
export async function locationOf(client: LanceClient, id: string[]): Promise<string> {
  return basename((await client.describeTable({ id })).location ?? "");
}

function unique(names: readonly string[]): readonly string[] {
  assert.equal(new Set(names).size, names.length, `a name is listed twice: ${names}`);
  return names;
}
