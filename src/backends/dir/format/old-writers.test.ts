import { test } from "vitest";
import { temporaryDirectory } from "../../../../test/fixtures/dir/directory-backend.ts";
import { OLD_RELEASES, workOnOldTable } from "../../../../test/fixtures/dir/old-writers.ts";

for (const release of OLD_RELEASES) {
  test(`reads, appends to, merges into, commits to and prunes a table of pylance ${release}`, async (t) => {
    await workOnOldTable(t, await temporaryDirectory(t), release);
  });
}
