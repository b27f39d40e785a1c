import assert from "node:assert/strict";
import { test } from "vitest";
import {
  failsWith,
  openClient,
  temporaryDirectory,
} from "../../../../../test/fixtures/dir/directory-backend.ts";
import { rows } from "../../../../../test/fixtures/dir/rows.ts";

const KEY = "table_version_tracking_enabled";

test("declaring and describing a table say who commits: by the catalog's setting, or by the table's own property", async (t) => {
  const root = await temporaryDirectory(t);
  for (const managedVersioning of [false, true]) {
    const client = await openClient(t, root, { managedVersioning });
    for (const [own, expected] of [
      [undefined, managedVersioning || undefined],
      ["true", true],
      ["false", undefined],
    ] as const) {
      const name = `t-${managedVersioning}-${own}`;
      const properties: Record<string, string> = own === undefined ? {} : { [KEY]: own };
      const declared = await client.call("declareTable", name, { properties });
      const described = await client.call("describeTable", name);
      assert.deepEqual([declared.managedVersioning, described.managedVersioning], [expected, expected], name);
    }
  }
});

test("metadata of a version, which nothing would keep, is refused", async (t) => {
  const client = await openClient(t, await temporaryDirectory(t));
  await client.upload("createTable", "t", {}, rows([1]));
  const version = { version: 2n, manifestPath: "t.lance/_versions/2.manifest-new", metadata: { a: "b" } };
  const refused = failsWith("Unsupported");
  await assert.rejects(client.call("createTableVersion", "t", version), refused);
  const entries = [{ id: ["t"], ...version }];
  await assert.rejects(client.call("batchCreateTableVersions", "", { entries }), refused);
});
