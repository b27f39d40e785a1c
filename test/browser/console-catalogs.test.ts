import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { connect } from "../../src/client/index.ts";
import { startGateway } from "../clients/support/gateway.ts";
import { startIcebergServer } from "../support/catalogs/iceberg-server.ts";
import { temporaryDirectory } from "../support/directory.ts";
import { openPage } from "./chromium.ts";
import { buildConsole, DESK, isTooWide, violationsOf } from "./console-page.ts";

beforeAll(buildConsole);

test("the console shows whose catalog a database is, and offers only what that can do", async (t) => {
  const { path, remove } = await temporaryDirectory();
  t.onTestFinished(remove);
  const catalog = await startIcebergServer("polaris");
  t.onTestFinished(catalog.close);
  const file = join(path, "gateway.yaml");
  const tables = join(path, "tables");
  writeFileSync(
    file,
    `databases:
  lake:
    backend: dir
    root: ${join(path, "lake")}
  polaris:
    backend: polaris
    uri: ${catalog.url}
    warehouse: ${catalog.warehouse}
    rows: here
    table-root: ${tables}
    allowed-location: ${tables}
routes:
  - by: namespace
`,
  );
  const gateway = await startGateway("--config", file);
  t.onTestFinished(() => gateway.close());
  await using ns = await connect("connect", { uri: gateway.uri });
  for (const database of ["lake", "polaris"]) {
    await ns.createNamespace({ id: [database, "sales"] });
    await ns.createTable({ id: [database, "sales", "people"] }, [{ id: 1 }]);
  }
  const page = await openPage(t);
  await page.setViewportSize(DESK);
  const heading = (name: string) => page.getByRole("heading", { level: 1, name, exact: true });
  const button = (name: string) => page.getByRole("button", { name, exact: true });

  await page.goto(`${gateway.uri}/console/`);
  await page.getByText("nobody, as the gateway asks for nothing").waitFor();
  expect(await button("New table").count()).toBe(0);
  expect(await page.locator(".home-facts").textContent()).toContain("Storagethat of each database");

  await page.getByRole("treeitem", { name: "polaris" }).click();
  await page.getByText("The catalog is Apache Polaris.").waitFor();
  const note = await page.getByText("The catalog is Apache Polaris.").textContent();
  expect(note).toContain("cannot: drop tables with their files; rename tables;");
  expect(note).not.toContain("rows;");
  await page.getByText(`${catalog.url} ${catalog.warehouse}; rows are read and written here`).waitFor();
  expect(await button("New table").count()).toBe(1);
  expect(await violationsOf(page)).toEqual([]);
  expect(await isTooWide(page)).toBe(false);

  await page.getByRole("treeitem", { name: "lake" }).click();
  await heading("lake").waitFor();
  await button("New table").waitFor();
  await page.getByText(join(path, "lake", "data")).waitFor();
  expect(await page.getByText("The catalog is").count()).toBe(0);

  for (const [database, buttons] of [
    ["lake", 1],
    ["polaris", 0],
  ] as const) {
    await page.goto(`${gateway.uri}/console/#/table/rows/${database}/sales/people`);
    await page.getByText("1 to 1 of 1").waitFor();
    for (const name of ["Rename", "Drop"]) expect(await button(name).count()).toBe(buttons);
  }
});
