import { readFile } from "node:fs/promises";
import * as arrow from "apache-arrow";
import { asyncBufferFromFile, parquetReadObjects } from "hyparquet";
import type { Page } from "playwright-core";
import { beforeAll, describe, expect, type TestContext, test } from "vitest";
import { connect } from "../../src/client/index.ts";
import { startGateway } from "../clients/support/gateway.ts";
import { openPage } from "./chromium.ts";
import { buildConsole, DESK, isTooWide, PHONE, TABLET, takePicture, violationsOf } from "./console-page.ts";

const COUNT = 70;
const ID = ["things"];

/** Rows with a value of each kind that a grid shows in its own way. */
function things(): arrow.Table {
  const ids = Array.from({ length: COUNT }, (_, id) => id);
  const numbers = new arrow.FixedSizeList(8, new arrow.Field("item", new arrow.Float32(), true));
  const group = new arrow.Struct([
    new arrow.Field("size", new arrow.Int32(), true),
    new arrow.Field("tags", new arrow.List(new arrow.Field("item", new arrow.Utf8(), true)), true),
  ]);
  const of = <T extends arrow.DataType>(type: T, value: (id: number) => unknown) =>
    arrow.vectorFromArray(ids.map(value), type);
  return new arrow.Table({
    id: of(new arrow.Int64(), (id) => 9_007_199_254_740_993n + BigInt(id)),
    name: of(new arrow.Utf8(), (id) => `thing ${String((id * 37) % COUNT).padStart(2, "0")}`),
    price: of(new arrow.Float64(), (id) => id + 0.123456789),
    seen: of(new arrow.TimestampMicrosecond("UTC"), (id) => 1_700_000_000_000 + id),
    facts: of(group, (id) => ({ size: id, tags: ["a", `b${id}`] })),
    note: of(new arrow.Utf8(), (id) => `A long\ndescription of thing ${id}. `.repeat(20)),
    vector: of(numbers, (id) => Array.from({ length: 8 }, (_, at) => Math.sin((id + 1) * (at + 1)))),
  });
}

/** Opens a page of the table. */
async function openTable(t: TestContext, view: string) {
  const gateway = await startGateway();
  t.onTestFinished(() => gateway.close());
  const ns = await connect("connect", { uri: gateway.uri });
  t.onTestFinished(() => ns.close());
  await ns.createTable({ id: ID }, things());
  const page = await openPage(t);
  await page.setViewportSize(DESK);
  await page.goto(`${gateway.uri}/console/#/table/${view}/things`);
  return { page, ns };
}

const namesIn = (page: Page) => page.locator(".grid-row td:nth-child(3)").allTextContents();
const dialog = (page: Page) => page.getByRole("dialog");

/** Saves the rows in a format, and returns the file. */
async function save(page: Page, format: string, rows: string): Promise<string> {
  await page.getByRole("button", { name: "Export", exact: true }).click();
  await page.getByLabel("Format").selectOption(format);
  await dialog(page).getByLabel("Rows").selectOption(rows);
  const download = page.waitForEvent("download");
  await dialog(page).getByRole("button", { name: "Export" }).click();
  return (await download).path();
}

beforeAll(buildConsole);

describe("the grid of the console", () => {
  test("shows rows of a line, and the whole of a row that is opened", async (t) => {
    const { page } = await openTable(t, "rows");
    await page.getByText("1 to 50 of 70").waitFor();
    const heights = await page
      .locator(".grid-row")
      .evaluateAll((rows) => rows.map((row) => row.clientHeight));
    expect(Math.max(...heights)).toBeLessThan(40);
    await page.getByRole("button", { name: "row 2", exact: true }).press("Enter");
    await page.getByText("0.909297", { exact: false }).waitFor();
    await page.getByText("tags", { exact: false }).first().waitFor();
    await page.getByText("9007199254740994").first().waitFor();
    for (const [size, scheme] of [
      [DESK, "light"],
      [TABLET, "dark"],
      [PHONE, "light"],
    ] as const) {
      await page.setViewportSize(size);
      await page.emulateMedia({ colorScheme: scheme });
      expect(await violationsOf(page)).toEqual([]);
      expect(await isTooWide(page)).toBe(false);
      await takePicture(page, `row-${scheme}-${size.width}`);
    }
  });

  test("keeps its header and its scroll bar in sight", async (t) => {
    const { page } = await openTable(t, "rows");
    await page.getByText("1 to 50 of 70").waitFor();
    const grid = page.locator(".grid-scroll");
    await grid.evaluate((element) => element.scrollTo(200, 600));
    const box = await grid.boundingBox();
    const head = await page.locator(".grid thead th").nth(1).boundingBox();
    expect(Math.abs((head?.y ?? 0) - (box?.y ?? 0))).toBeLessThan(3);
    expect((box?.y ?? 0) + (box?.height ?? 0)).toBeLessThanOrEqual(DESK.height);
  });

  test("sorts all rows of the table, keeps that in the address, and goes back", async (t) => {
    const { page } = await openTable(t, "rows");
    await page.getByRole("button", { name: "name", exact: true }).click();
    await expect.poll(async () => (await namesIn(page))[0]).toBe("thing 00");
    await page.getByRole("button", { name: "name", exact: true }).click();
    await expect.poll(async () => (await namesIn(page))[0]).toBe("thing 69");
    await page.getByRole("button", { name: "Next" }).click();
    await page.getByText("51 to 70 of 70").waitFor();
    await page.reload();
    await page.getByText("51 to 70 of 70").waitFor();
    expect((await namesIn(page))[0]).toBe("thing 19");
    await page.goBack();
    await page.getByText("1 to 50 of 70").waitFor();
  });

  test("hides columns, and exports all of them in each format", async (t) => {
    const { page } = await openTable(t, "rows");
    await page.getByText(/^Columns: 7 of 7/).click();
    await page.getByRole("checkbox", { name: "note" }).uncheck();
    await page.getByText(/^Columns: 6 of 7/).click();
    expect(await page.getByRole("columnheader", { name: "note" }).count()).toBe(0);
    const csv = (await readFile(await save(page, "csv", "shown"), "utf8")).split("\n");
    expect(csv[0]).toBe("id,name,price,seen,facts,note,vector");
    const json = JSON.parse(await readFile(await save(page, "json", "all"), "utf8"));
    expect([json.length, json[1].seen, json[1].price]).toEqual([
      COUNT,
      "2023-11-14T22:13:20.001Z",
      1.123456789,
    ]);
    const file = arrow.tableFromIPC(await readFile(await save(page, "arrow", "all")));
    expect([file.numRows, String(file.schema.fields[3]?.type)]).toEqual([
      COUNT,
      "Timestamp<MICROSECOND, UTC>",
    ]);
    const parquet = await asyncBufferFromFile(await save(page, "parquet", "all"));
    const rows = await parquetReadObjects({ file: parquet });
    expect([rows.length, rows[1]?.["id"], rows[1]?.["facts"]]).toEqual([
      COUNT,
      9_007_199_254_740_994n,
      { size: 1, tags: ["a", "b1"] },
    ]);
  });

  test("puts the distance first, keeps the query in the address, and copies it for programs", async (t) => {
    const { page } = await openTable(t, "rows");
    await page
      .getByRole("row", { name: "thing 37" })
      .getByRole("button", { name: "like this" })
      .first()
      .click();
    await page.getByText(/^10 rows in .*; the limit cut more that match/).waitFor();
    expect(await page.locator(".grid thead th").nth(1).textContent()).toBe("_distance");
    await page.getByLabel("Filter").fill("price < 20");
    await page.getByLabel("Filter").press("Enter");
    await expect.poll(() => page.url()).toContain("price");
    await page.reload();
    await page.getByText(/^10 rows in/).waitFor();
    expect(await page.getByLabel("Filter").inputValue()).toBe("price < 20");
    await page.getByRole("button", { name: "Next" }).click();
    await page.getByText("11 to 20").waitFor();
    await page.goBack();
    await page.getByText("1 to 10").waitFor();
    await page.locator("form.query").getByRole("button", { name: "Copy as…" }).click();
    for (const [name, text] of [
      ["Python", 'db.open_table("things")'],
      ["Node.js", "namespace.queryTable("],
      ["curl", "/v1/table/things/query"],
      ["gRPC", "grpcurl -plaintext"],
    ] as const) {
      await dialog(page).getByRole("button", { name, exact: true }).click();
      expect(await page.locator(".snippet").textContent()).toContain(text);
    }
    expect(await violationsOf(page)).toEqual([]);
    await takePicture(page, "snippet-light");
  });

  test("draws a map of vectors, by groups, and shows the row of a point", async (t) => {
    const { page } = await openTable(t, "map");
    await page.getByText(/^70 vectors, all rows/).waitFor();
    await page.getByLabel("Colour").selectOption("name");
    await page.getByText("others").waitFor();
    await page.getByRole("img", { name: "Map of 70 vectors" }).press("ArrowRight");
    await page.getByRole("region", { name: "The chosen row" }).waitFor();
    for (const [size, scheme] of [
      [DESK, "light"],
      [PHONE, "dark"],
    ] as const) {
      await page.setViewportSize(size);
      await page.emulateMedia({ colorScheme: scheme });
      expect(await violationsOf(page)).toEqual([]);
      expect(await isTooWide(page)).toBe(false);
      await takePicture(page, `map-groups-${scheme}-${size.width}`);
    }
  });
});

describe("a table in the console", () => {
  test("changes and deletes rows after it has counted them, and its header follows", async (t) => {
    const { page, ns } = await openTable(t, "rows");
    await page.getByRole("button", { name: "row 3", exact: true }).click();
    await page.getByRole("button", { name: "Change…" }).click();
    await dialog(page).getByText("1 row of the table").waitFor();
    await dialog(page).getByLabel("Column").selectOption("price");
    await dialog(page).getByLabel("New value in SQL").fill("42.5");
    expect(await violationsOf(page)).toEqual([]);
    await takePicture(page, "change-rows-light");
    await dialog(page).getByRole("button", { name: "Change 1 row" }).click();
    await dialog(page).waitFor({ state: "detached" });
    await expect
      .poll(async () => (await ns.countTableRows({ id: ID, predicate: "price = 42.5" })).count)
      .toBe(1n);
    // The rows are read again, and all of them are closed then.
    await page.getByRole("button", { name: "Change…" }).waitFor({ state: "detached" });
    await page.getByRole("button", { name: "row 5", exact: true }).click();
    await page.getByRole("button", { name: "Delete…" }).click();
    await dialog(page).getByLabel("Rows for which").fill("price < 10");
    await dialog(page).getByText("9 rows of the table").waitFor();
    await dialog(page).getByRole("button", { name: "Delete 9 rows" }).click();
    await page.getByText("1 to 50 of 61").waitFor();
    await expect.poll(() => page.locator(".figures").textContent()).toContain("Rows61");
    await page.getByRole("link", { name: "Versions" }).click();
    await page.getByText("rows deleted, -9, 61 rows").waitFor();
    expect(await violationsOf(page)).toEqual([]);
    await takePicture(page, "deeds-light");
  });

  test("adds, renames and drops columns, and names their types as Arrow does", async (t) => {
    const { page, ns } = await openTable(t, "schema");
    await page.getByText("fixed_size_list<float32, 8>").waitFor();
    await page.getByRole("button", { name: "Add a column" }).click();
    await dialog(page).getByLabel("Name", { exact: true }).fill("double");
    await dialog(page).getByLabel("Values").selectOption("computed");
    await dialog(page).getByLabel("Expression in SQL").fill("price * 2");
    await takePicture(page, "add-column-light");
    await dialog(page).getByRole("button", { name: "Add", exact: true }).click();
    await page.getByRole("button", { name: "Rename column double" }).click();
    await dialog(page).getByLabel("New name of double").fill("twice");
    await dialog(page).getByRole("button", { name: "Rename" }).click();
    await page.getByRole("button", { name: "Drop column note" }).click();
    await dialog(page).getByLabel("Type note to confirm").fill("note");
    await dialog(page).getByRole("button", { name: "Drop note" }).click();
    await dialog(page).waitFor({ state: "detached" });
    const { schema } = await ns.describeTable({ id: ID, loadDetailedMetadata: true });
    const names = schema?.fields.map(({ name }) => name);
    expect(names).toEqual(["id", "name", "price", "seen", "facts", "vector", "twice"]);
    expect(await violationsOf(page)).toEqual([]);
  });
});
