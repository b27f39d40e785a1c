import assert from "node:assert/strict";
import { test } from "vitest";
import { unlistedAmong } from "./walk.ts";

test("a table whose drop ends during the look at its directory is not among those without a row", async () => {
  const shown = new Set(["a.lance", "dropped.lance"]);
  const context = {
    layout: { isUnlistedTable: async (location: string) => shown.has(location) },
    journal: {
      async removing() {
        shown.delete("dropped.lance");
        return new Set<string>();
      },
    },
  };
  const locations = ["a.lance", "b.lance", "dropped.lance"];
  assert.deepEqual(await unlistedAmong(context as never, locations), ["a.lance"]);
});
