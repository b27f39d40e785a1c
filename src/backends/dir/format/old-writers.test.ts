import { test } from "vitest";
import { temporaryDirectory } from "../test-support.ts";
import { OLD_RELEASES, workOnOldTable } from "./old-writers-fixture.ts";

for (const release of OLD_RELEASES) {
  test(`a table of pylance ${release} is read, appended to, merged, committed to and pruned`, async (t) => {
    await workOnOldTable(t, await temporaryDirectory(t), release);
  });
}
