import { execFileSync } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as arrow from "apache-arrow";
import type { Page } from "playwright-core";
import { beforeAll, describe, expect, test } from "vitest";
import { connect } from "../../src/client/index.ts";
import { createGateway } from "../../src/gateway/create-gateway.ts";
import { type GatewayProcess, startGateway } from "../clients/support/gateway.ts";
import { MAIN, NODE } from "../support/node-command.ts";
import { openPage } from "./chromium.ts";
import {
  buildConsole,
  DESK,
  dropFile,
  isTooWide,
  PHONE,
  TABLET,
  takePicture,
  violationsOf,
} from "./console-page.ts";
import { MANY_TABLES } from "./many-tables.ts";

const DIMENSION = 32;
const COUNT = 120;
const WORDS = ["red shoes", "blue shirt", "green hat", "warm coat"];

/** Fills a catalog with tables that have something to show. */
async function fill({ uri }: GatewayProcess): Promise<void> {
  await using ns = await connect("connect", { uri });
  await ns.createNamespace({ id: ["shop"], properties: { owner: "sales" } });
  const rows = Array.from({ length: COUNT }, (_, id) => ({
    id: BigInt(id),
    name: WORDS[id % WORDS.length],
    price: (id * 37) % 100,
    seen: new Date(Date.UTC(2026, 0, 1) + id * 3_600_000),
    vector: Float32Array.from({ length: DIMENSION }, (_, at) => Math.sin((id + 1) * (at + 1))),
    note: id % 3 === 0 ? `${"A long description of the product. ".repeat(8)}` : "Short.",
    picture: PNG,
  }));
  await ns.createTable({ id: ["shop", "products"] }, rows);
  await ns.insertIntoTable({ id: ["shop", "products"] }, rows.slice(0, 10));
  await ns.createTableTag({ id: ["shop", "products"], tag: "first", version: 1 });
  await ns.createTableBranch({ id: ["shop", "products"], name: "try-out" });
  await ns.createTableIndex({ id: ["shop", "products"], column: "name", indexType: "FTS" });
  await ns.createTable({ id: ["shop", `a_table_with_a_${"very_".repeat(12)}long_name`] }, [{ id: 1 }]);
  await ns.createTable({ id: ["events"] }, [{ id: 1, kind: "start" }]);
}

/** Adds a key to a file of keys, and returns it. */
function createKey(file: string, role: string): string {
  const [node, ...flags] = NODE;
  const args = [MAIN, "keys", "create", "--file", file, "--name", role];
  return execFileSync(node, [...flags, ...args, "--role", role], { encoding: "utf8" }).trim();
}

/** A square of one pixel. */
const PNG = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==",
  "base64",
);

/** Pages, by the address and what they show once they are there. */
const PAGES: Readonly<Record<string, readonly [hash: string, shows: string]>> = {
  catalog: ["#/", "Import a file"],
  namespace: ["#/namespace/shop", "sales"],
  rows: ["#/table/rows/shop/products", "1 to 50 of 130"],
  schema: ["#/table/schema/shop/products", "vector of 32 32-bit numbers"],
  query: ["#/table/query/shop/products", "Show the plan"],
  map: ["#/table/map/shop/products", "130 vectors"],
  versions: ["#/table/versions/shop/products", "Version 2"],
  refs: ["#/table/refs/shop/products", "try-out"],
  indices: ["#/table/indices/shop/products", "rows in the index"],
  activity: ["#/activity", "Calls per second"],
  missing: ["#/table/rows/shop/missing", "table not found"],
};

async function visit(page: Page, uri: string, name: string): Promise<void> {
  const [hash, shows] = PAGES[name] as (typeof PAGES)[string];
  await page.goto(`${uri}/console/${hash}`);
  await page.getByText(shows, { exact: false }).first().waitFor();
}

beforeAll(buildConsole);

describe("the console, in a browser", () => {
  test("imports a file that is dropped on it, searches in its rows, and drops the table", async (t) => {
    const gateway = await startGateway();
    t.onTestFinished(() => gateway.close());
    const page = await openPage(t);
    await page.goto(gateway.uri);
    await page.getByText("Import a file").waitFor();
    const lines = ["id,name,vector", ...WORDS.map((name, id) => `${id},${name},"[${id}, 1, 0, ${-id}]"`)];
    await dropFile(page, "people.csv", lines.join("\n"));
    await page.getByRole("button", { name: "Import", exact: true }).click();
    await page.getByText("1 to 4 of 4").waitFor();

    await page.getByRole("row", { name: "green hat" }).getByRole("button", { name: "like this" }).click();
    await page.getByText(/^4 rows in/).waitFor();
    const [first] = await page.locator("tbody tr").allTextContents();
    expect(first).toContain("green hat");
    await page.getByLabel("Filter").fill("id > 2");
    await page.getByRole("button", { name: "Search" }).click();
    await page.getByText(/^1 rows? in/).waitFor();
    await page.getByRole("button", { name: "Show the plan" }).click();
    await page.getByRole("region", { name: "Plan" }).getByRole("listitem").first().waitFor();

    await page.getByRole("button", { name: "Rename" }).click();
    await page.getByLabel("New name").fill("folk");
    await page.getByRole("dialog").getByRole("button", { name: "Rename" }).click();
    await page.getByRole("heading", { name: "folk" }).waitFor();
    await page.getByRole("button", { name: "Drop" }).click();
    const confirm = page.getByRole("dialog").getByRole("button", { name: "Drop folk" });
    await expect.poll(() => confirm.isDisabled()).toBe(true);
    await page.getByLabel(/^Type folk/).fill("folk");
    await confirm.click();
    await page.getByRole("heading", { name: "Catalog" }).waitFor();
    await using ns = await connect("connect", { uri: gateway.uri });
    expect((await ns.listTables({})).tables).toEqual([]);
  });

  test("imports Arrow and Parquet files with their types", async (t) => {
    const gateway = await startGateway();
    t.onTestFinished(() => gateway.close());
    const page = await openPage(t);
    const { Table, writeParquet } = await import("parquet-wasm");
    const table = new arrow.Table({
      id: arrow.vectorFromArray([1n, 2n], new arrow.Int64()),
      seen: arrow.vectorFromArray([0, 1], new arrow.TimestampMicrosecond("UTC")),
    });
    const stream = arrow.tableToIPC(table, "stream");
    const files = {
      "a.parquet": writeParquet(Table.fromIPCStream(stream)),
      "b.arrow": arrow.tableToIPC(table, "file"),
      "c.arrows": stream,
    };
    await using ns = await connect("connect", { uri: gateway.uri });
    for (const [name, content] of Object.entries(files)) {
      await page.goto(`${gateway.uri}/console/#/`);
      await page.getByText("Import a file").waitFor();
      await dropFile(page, name, content);
      await page.getByRole("button", { name: "Import", exact: true }).click();
      await page.getByText("1 to 2 of 2").waitFor();
      const { schema } = await ns.describeTable({ id: [name.slice(0, 1)], loadDetailedMetadata: true });
      const types = schema?.fields.map(({ type }) => type?.logicalType || type?.type);
      expect(types, name).toEqual(["int64", "timestamp:us:UTC"]);
    }
  });

  test("finds a table among a hundred thousand, of which it draws those in view", async (t) => {
    const gateway = await createGateway({ backend: MANY_TABLES, port: 0 });
    t.onTestFinished(async () => void (await gateway.close()));
    const page = await openPage(t);
    await page.goto(`http://127.0.0.1:${gateway.address.port}/console/`);
    await page.getByRole("treeitem", { name: "table_000000" }).waitFor();
    await page.getByLabel("Names that begin with").fill("table_0999");
    await expect.poll(() => page.getByRole("treeitem").first().textContent()).toBe("table_099900");
    await page.getByLabel("Names that begin with").fill("");
    const tree = page.getByRole("tree", { name: "Catalog" });
    await tree.focus();
    await page.keyboard.press("End");
    await page.getByRole("treeitem", { name: "table_099999" }).waitFor();
    expect(await page.getByRole("treeitem").count()).toBeLessThan(100);
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "table_099999" }).waitFor();
  });

  test("shows names and values with scripts in them as texts", async (t) => {
    const gateway = await startGateway("--names", "unicode");
    t.onTestFinished(() => gateway.close());
    const script = "<img src=x onerror=alert(1)>";
    await using ns = await connect("connect", { uri: gateway.uri });
    await ns.createTable({ id: [script], properties: { [script]: script } }, [{ [script]: script }]);
    const page = await openPage(t);
    for (const view of ["rows", "schema", "versions"]) {
      await page.goto(`${gateway.uri}/console/#/table/${view}/${encodeURIComponent(script)}`);
      await page.getByRole("heading", { name: script }).waitFor();
      await page.getByText(script).nth(1).waitFor();
    }
    expect(await page.title()).toBe("Lance Gateway");
    expect(await page.locator("img").count()).toBe(0);
  });

  test("asks for a key where the gateway does, and hides what its owner may not do", async (t) => {
    const keys = join(mkdtempSync(join(tmpdir(), "console-keys-")), "keys.json");
    const { reader, owner } = Object.fromEntries(
      ["reader", "owner"].map((role) => [role, createKey(keys, role)]),
    ) as Record<"reader" | "owner", string>;
    const gateway = await startGateway("--auth", "api-key", "--api-keys-file", keys);
    t.onTestFinished(() => gateway.close());
    await using ns = await connect("connect", { uri: gateway.uri, "headers.x-api-key": owner });
    await ns.createTable({ id: ["t"] }, [{ id: 1 }]);
    const page = await openPage(t);
    const signIn = async (key: string) => {
      await page.goto(`${gateway.uri}/console/#/table/rows/t`);
      await page.getByLabel("API key", { exact: true }).fill(key);
      await page.getByRole("button", { name: "Sign in" }).click();
    };
    await signIn("wrong");
    await page.getByRole("alert").waitFor();
    expect(await violationsOf(page)).toEqual([]);
    await takePicture(page, "sign-in-light");
    expect(await page.getByRole("combobox").count()).toBe(0);
    await page.reload();
    await page.locator("input[type=password]:focus").waitFor();
    await page.getByLabel("API key", { exact: true }).fill(reader);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText("1 to 1 of 1").waitFor();
    await page.reload();
    await page.getByText("1 to 1 of 1").waitFor();
    await page.getByRole("link", { name: "Tables" }).click();
    await page.getByText("api-key:reader").waitFor();
    expect(await page.getByRole("button", { name: "Drop" }).count()).toBe(0);
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    await signIn(owner);
    await page.getByRole("button", { name: "Drop" }).waitFor();
  });

  test.for(["light", "dark"] as const)(
    "has pages that axe finds nothing wrong with, %s, at three widths",
    async (scheme, t) => {
      const gateway = await startGateway();
      t.onTestFinished(() => gateway.close());
      await fill(gateway);
      const page = await openPage(t);
      await page.emulateMedia({ colorScheme: scheme });
      for (const name of Object.keys(PAGES)) {
        for (const [device, size] of Object.entries({ desk: DESK, tablet: TABLET, phone: PHONE })) {
          // The page loads at this width.
          await page.goto("about:blank");
          await page.setViewportSize(size);
          await visit(page, gateway.uri, name);
          expect(await violationsOf(page), `${name} on a ${device}`).toEqual([]);
          expect(await isTooWide(page), `${name} on a ${device}`).toBe(false);
          await takePicture(page, `${name}-${scheme}-${device}`);
        }
      }
    },
  );
});
