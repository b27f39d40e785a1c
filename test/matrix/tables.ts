import { people, personStream } from "../support/arrow.ts";
import type { LanceClient } from "../support/client.ts";

/** Creates a table for one scenario, with versions 1 to 3. */
export async function grown(client: LanceClient, id: string[]): Promise<string[]> {
  await client.createTable({ id }, personStream(people(1)));
  for (const first of [1, 2]) await client.insertIntoTable({ id }, personStream(people(1, first)));
  return id;
}

/** Creates a table of five people for one scenario. */
export async function fresh(client: LanceClient, ns: string, name: string): Promise<string[]> {
  const id = [ns, `own_${name}`];
  await client.createTable({ id }, personStream(people(5)));
  return id;
}

/** Names a branch that no table has. */
export const MISSING_BRANCH = { branch: "missing" };
