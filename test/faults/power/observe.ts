import { tableFromIPC } from "apache-arrow";
import type { TestClient } from "../../fixtures/dir/directory-backend.ts";

/** The visible state of a catalog, by the text of its objects' ids. */
export type Observation = Readonly<Record<string, string>>;

const DELIMITER = "$";

/** Lists all objects that a client can find and reads every table to its end. */
export async function observe(client: TestClient): Promise<Observation> {
  const found: Record<string, string> = {};
  async function namespace(id: string): Promise<void> {
    const below = (name: string) => (id === "" ? name : id + DELIMITER + name);
    for (const name of (await client.call("listTables", id, { includeDeclared: true })).tables) {
      found[`table ${below(name)}`] = await table(below(name));
    }
    for (const name of (await client.call("listNamespaces", id)).namespaces) {
      const { properties } = await client.call("describeNamespace", below(name));
      found[`namespace ${below(name)}`] = JSON.stringify(properties);
      await namespace(below(name));
    }
  }
  async function table(id: string): Promise<string> {
    const { properties, isOnlyDeclared } = await client.call("describeTable", id, { checkDeclared: true });
    if (isOnlyDeclared) return `declared ${JSON.stringify(properties)}`;
    const rows = tableFromIPC(await client.query(id)).toArray();
    const ids = rows.map((row) => Number(row["id"])).sort((a, b) => a - b);
    const { versions } = await client.call("listTableVersions", id, {});
    const { tags } = await client.call("listTableTags", id);
    const tagged = Object.entries(tags).map(([name, { version }]) => `${name}=${version}`);
    return `${ids} ${JSON.stringify(properties)} v${versions.map(({ version }) => version).sort()} ${tagged.sort()}`;
  }
  await namespace("");
  return found;
}
