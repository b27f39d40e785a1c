import * as arrow from "apache-arrow";
import type { Page } from "playwright-core";
import { beforeAll, describe, expect, type TestContext, test } from "vitest";
import { connect } from "../../src/client/index.ts";
import { indexableColumns } from "../../src/console/table/index-types.ts";
import { startGateway } from "../clients/support/gateway.ts";
import { openPage } from "./chromium.ts";
import { buildConsole, DESK, dropFile, isTooWide, PHONE, takePicture, violationsOf } from "./console-page.ts";

/** Rows of the table: product quantizers learn from 256 or more. */
const COUNT = 300;
const ID = ["shop"];

/** Opens a page of a table. */
async function openTable(t: TestContext, view: "refs" | "indices") {
  const gateway = await startGateway();
  t.onTestFinished(() => gateway.close());
  const ns = await connect("connect", { uri: gateway.uri });
  t.onTestFinished(() => ns.close());
  const rows = Array.from({ length: COUNT }, (_, id) => ({
    ...{ id, name: `red shoes ${id}` },
    vector: Float32Array.from({ length: 16 }, (_, at) => Math.sin((id + 1) * (at + 1))),
  }));
  await ns.createTable({ id: ID }, rows);
  const page = await openPage(t);
  await page.goto(`${gateway.uri}/console/#/table/${view}/shop`);
  return { page, ns };
}

const dialog = (page: Page) => page.getByRole("dialog");
const hasFocus = (page: Page) => page.locator("dialog input:focus").waitFor();
const isClosed = (page: Page) => dialog(page).waitFor({ state: "detached" });

/** Drops what a button names, after its name has been typed. */
async function drop(page: Page, kind: string, name: string): Promise<void> {
  await page.getByRole("button", { name: `Drop ${kind} ${name}` }).click();
  const confirm = dialog(page).getByRole("button", { name: `Drop ${name}`, exact: true });
  expect(await confirm.isDisabled()).toBe(true);
  await page.getByLabel(`Type ${name} to confirm`).fill(name);
  await confirm.click();
  await isClosed(page);
}

/** Draws a dialog on a desk and on a phone, and has axe look at it. */
async function inspect(page: Page, name: string): Promise<void> {
  for (const [size, scheme, suffix] of [
    [PHONE, "dark", "dark-phone"],
    [DESK, "light", "light"],
  ] as const) {
    await page.setViewportSize(size);
    await page.emulateMedia({ colorScheme: scheme });
    expect(await violationsOf(page), `${name} ${suffix}`).toEqual([]);
    expect(await isTooWide(page), `${name} ${suffix}`).toBe(false);
    await takePicture(page, `${name}-${suffix}`);
  }
}

/** Rows with a column of each type that can have an index. */
function ofAllTypes(): arrow.Table {
  const list = (item: arrow.DataType) => new arrow.List(new arrow.Field("item", item, true));
  const vector = new arrow.FixedSizeList(16, new arrow.Field("item", new arrow.Float32(), true));
  const column = <T extends arrow.DataType>(type: T, value: (id: number) => unknown) =>
    arrow.vectorFromArray(
      Array.from({ length: COUNT }, (_, id) => value(id)),
      type,
    );
  return new arrow.Table({
    int8: column(new arrow.Int8(), (id) => id % 100),
    int32: column(new arrow.Int32(), (id) => id),
    int64: column(new arrow.Int64(), (id) => BigInt(id)),
    uint64: column(new arrow.Uint64(), (id) => BigInt(id)),
    float32: column(new arrow.Float32(), (id) => id / 2),
    float64: column(new arrow.Float64(), (id) => id / 2),
    bool: column(new arrow.Bool(), (id) => id % 2 === 0),
    date: column(new arrow.DateDay(), (id) => new Date(id * 86_400_000)),
    time: column(new arrow.TimeMicrosecond(), (id) => BigInt(id)),
    timestamp: column(new arrow.TimestampMicrosecond("UTC"), (id) => id),
    text: column(new arrow.Utf8(), (id) => `red shoes ${id}`),
    large_text: column(new arrow.LargeUtf8(), (id) => `red shoes ${id}`),
    integers: column(list(new arrow.Int32()), (id) => [id % 3, id % 5]),
    texts: column(list(new arrow.Utf8()), (id) => ["a", `b${id % 5}`]),
    vector: column(vector, (id) => Array.from({ length: 16 }, (_, at) => Math.sin((id + 1) * (at + 1)))),
  });
}

beforeAll(buildConsole);

describe("the console", () => {
  test("creates branches and tags, by the keyboard, and drops them", async (t) => {
    const { page, ns } = await openTable(t, "refs");
    await page.getByRole("button", { name: "New branch" }).press("Enter");
    await hasFocus(page);
    await page.keyboard.type("try-out");
    await inspect(page, "new-branch");
    await page.keyboard.press("Enter");
    await isClosed(page);
    await page.getByRole("button", { name: "New tag" }).press("Enter");
    await hasFocus(page);
    await page.keyboard.type("first");
    await inspect(page, "new-tag");
    await page.keyboard.press("Enter");
    await isClosed(page);
    await inspect(page, "refs-changes");
    expect(await Array.fromAsync(ns.listTableTags({ id: ID }))).toMatchObject([["first", { version: 1n }]]);
    expect(await Array.fromAsync(ns.listTableBranches({ id: ID }))).toMatchObject([["try-out", {}]]);

    await page.getByRole("button", { name: "Drop tag first" }).click();
    await inspect(page, "drop-tag");
    await page.keyboard.press("Escape");
    await isClosed(page);
    await drop(page, "tag", "first");
    await page.getByRole("button", { name: "Show branch try-out" }).click();
    await page.getByText("This is branch try-out").waitFor();
    await page.getByRole("link", { name: "Branches and tags" }).click();
    await drop(page, "branch", "try-out");
    await page.getByText("There is only the main branch.").waitFor();
    expect(await page.getByText("This is branch").count()).toBe(0);
    expect(await Array.fromAsync(ns.listTableBranches({ id: ID }))).toEqual([]);
  });

  test("gives a declared table its first rows", async (t) => {
    const { page, ns } = await openTable(t, "refs");
    await ns.declareTable({ id: ["plan"] });
    await page.goto(`${new URL(page.url()).origin}/console/#/table/rows/plan`);
    await page.getByText("is declared, and has no data yet").waitFor();
    expect(await page.getByRole("alert").count()).toBe(0);
    expect(await page.getByRole("link", { name: "Versions" }).count()).toBe(0);
    await page.getByRole("button", { name: "Add rows" }).click();
    await dropFile(page, "rows.csv", "name\nAnn\n\nBob\n");
    await dialog(page).getByRole("button", { name: "Import" }).click();
    await page.getByText("1 to 3 of 3").waitFor();
  });

  test("says in the form why a branch cannot be created", async (t) => {
    const { page } = await openTable(t, "refs");
    await page.getByRole("button", { name: "New branch" }).click();
    await page.getByLabel("Name", { exact: true }).fill("later");
    await page.getByLabel("From version").fill("99");
    await dialog(page).getByRole("button", { name: "Create" }).click();
    await dialog(page).getByRole("alert").waitFor();
  });

  test("creates an index of a type that suits its column, shows its job, and drops it", async (t) => {
    const { page, ns } = await openTable(t, "indices");
    await page.getByRole("button", { name: "New index" }).click();
    await page.getByLabel("Column").selectOption("vector");
    expect(await page.getByLabel("Type").locator("option").count()).toBe(5);
    await page.getByLabel("Type").selectOption("IVF_FLAT");
    await page.getByLabel(/^Distance/).selectOption("cosine");
    await page.getByLabel("Name", { exact: true }).fill("nearest");
    await inspect(page, "new-index");
    await dialog(page).getByRole("button", { name: "Create" }).click();
    await isClosed(page);
    await page.getByText("300 rows in the index").waitFor();
    await page.getByText("create index", { exact: true }).waitFor();
    await inspect(page, "indices-changes");
    const [index] = await Array.fromAsync(ns.listTableIndices({ id: ID }));
    expect(index).toMatchObject({ indexName: "nearest", indexType: "IVF_FLAT", columns: ["vector"] });
    await drop(page, "index", "nearest");
    await page.getByText("The table has no index.").waitFor();
  });

  test("offers types of indices that the gateway builds on the columns", async (t) => {
    const gateway = await startGateway();
    t.onTestFinished(() => gateway.close());
    await using ns = await connect("connect", { uri: gateway.uri });
    await ns.createTable({ id: ID }, ofAllTypes());
    const { schema } = await ns.describeTable({ id: ID, loadDetailedMetadata: true });
    const columns = indexableColumns(schema);
    expect(columns.map(({ path }) => path)).toEqual(schema?.fields.map(({ name }) => name));
    const refused: string[] = [];
    for (const { path: column, types } of columns) {
      for (const { name: indexType } of types) {
        const name = `${column}_${indexType}`;
        await ns
          .createTableIndex({ id: ID, column, indexType, name })
          .then(() => ns.dropTableIndex({ id: ID, indexName: name }))
          .catch((error: Error) => refused.push(`${name}: ${error.message}`));
      }
    }
    expect(refused).toEqual([]);
  });
});
