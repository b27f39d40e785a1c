import assert from "node:assert/strict";
import { test } from "vitest";
import { table } from "../../../../../test/fixtures/catalog/catalog.ts";
import { createState } from "../../catalog/state/state.ts";
import { createViewRegister } from "./auto-views.ts";
import { toProperties } from "./definition.ts";

test("looks for views in many changed tables with as many checks of the catalog as in a few", async () => {
  const names = Array.from({ length: 50 }, (_, i) => `t${i}`);
  const state = createState(names.map((name) => table(name)));
  let checks = 0;
  const catalog = {
    known: () => state,
    read: async () => {
      checks += 1;
      return state;
    },
  };
  const register = createViewRegister(catalog, 0);
  async function checksOf(tables: readonly string[]): Promise<number> {
    checks = 0;
    assert.deepEqual(await register.viewsOf(tables.map((name) => [name])), []);
    return checks;
  }
  assert.equal(await checksOf(names), await checksOf(names.slice(0, 2)));
});

test("forgets views that have gone without a call for them", async () => {
  const definition = {
    sourceQuery: "SELECT * FROM t",
    outputSchema: "",
    withNoData: false,
    autoRefresh: true,
  };
  const view = (name: string) => ({ ...table(name), properties: toProperties(definition) });
  let state = createState([view("v"), view("w")]);
  const register = createViewRegister({ known: () => state, read: async () => state }, 0);
  const names = async () => (await register.viewsOf([[]])).map(({ id }) => id.join("$"));
  assert.deepEqual(await names(), ["v", "w"]);
  state = createState([view("w")]);
  assert.deepEqual(await names(), ["w"]);
});
