/* A commit of a client with managed versioning, for this folder's tests. */
import assert from "node:assert/strict";
import { rename } from "node:fs/promises";
import { join } from "node:path";
import { rows } from "./rows-fixture.ts";
import type { TestClient } from "./test-support.ts";

/**
 * Commits a row to the table `t` as a client with managed versioning does, on the newest version.
 *
 * @param outsider writes the data and the manifest, and shares the directory with the gateway
 */
export async function commitAsClient(gateway: TestClient, outsider: TestClient, id: number): Promise<void> {
  const { version: number } = await outsider.upload("insertIntoTable", "t", {}, rows([id]));
  const { version } = await outsider.call("describeTableVersion", "t", { version: number });
  assert.ok(version);
  const manifestPath = `${version.manifestPath}-staged`;
  await rename(join("/", version.manifestPath), join("/", manifestPath));
  await gateway.call("createTableVersion", "t", { version: version.version, manifestPath });
}
