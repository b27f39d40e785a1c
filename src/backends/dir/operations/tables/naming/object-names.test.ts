import assert from "node:assert/strict";
import { test } from "vitest";
import { createState } from "../../../catalog/state/state.ts";
import { isUnlistedTable } from "./object-names.ts";

test("a table whose drop ends during the look at its directory is not a table without a row", async () => {
  const state = createState([]);
  let isThere = true;
  const context = {
    catalog: { read: async () => state },
    layout: { isUnlistedTable: async () => isThere },
    journal: {
      async removing() {
        isThere = false;
        return new Set<string>();
      },
    },
  };
  assert.equal(await isUnlistedTable(context as never, state, ["t"]), false);
});
