import assert from "node:assert/strict";
import { test } from "vitest";
import { openClient, temporaryDirectory } from "../../../../../test/fixtures/dir/directory-backend.ts";

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
