import { tableFromArrays, tableToIPC } from "apache-arrow";
import { beforeAll, describe, expect, test } from "vitest";
import { connect } from "../../src/client/index.ts";
import { startGateway } from "../clients/support/gateway.ts";
import { openPage } from "./chromium.ts";
import { buildConsole, DESK, dropFile, isTooWide, PHONE, takePicture, violationsOf } from "./console-page.ts";

beforeAll(buildConsole);

describe("an import in the console", () => {
  test("shows types and rows before it stores them, and takes another encoding and other types", async (t) => {
    const gateway = await startGateway();
    t.onTestFinished(() => gateway.close());
    const page = await openPage(t);
    await page.goto(`${gateway.uri}/console/#/`);
    await page.getByText("Import a file").waitFor();
    const text =
      "id,hash,at,price,name\n1,18446744073709551615,2026-05-04T13:02:01.123456Z,1.20,é\n2,1,2026-05-04T00:00:00Z,3,\n";
    await dropFile(page, "prices.csv", Buffer.from(text, "latin1"));
    await page
      .getByRole("alert")
      .getByText(/line 2, column 57 .*not in UTF-8/)
      .waitFor();
    const action = page.getByRole("button", { name: "Import", exact: true });
    expect(await action.isDisabled()).toBe(true);
    await page.getByLabel("Encoding of the text").selectOption("windows-1252");
    await page.getByText("18446744073709551615").waitFor();
    await page.getByText("2026-05-04 13:02:01.123456 UTC").waitFor();
    await page.getByLabel("Type of price").selectOption("decimal(38,10)");
    await page.getByText("1.2000000000").waitFor();
    await page.getByLabel("Type of id").selectOption("bool");
    await page
      .getByRole("alert")
      .getByText(/column "id", line 2/)
      .waitFor();
    await page.getByLabel("Type of id").selectOption("int8");
    await page.getByRole("columnheader", { name: /8-bit integer int8$/ }).waitFor();
    await page
      .getByRole("columnheader", { name: /time in microseconds, UTC timestamp\(us, UTC\)$/ })
      .waitFor();
    for (const [size, name] of [
      [PHONE, "import-preview-phone"],
      [DESK, "import-preview"],
    ] as const) {
      await page.setViewportSize(size);
      await page.locator(".import-types").scrollIntoViewIfNeeded();
      await page.locator(".drop-zone ~ .grid-frame").scrollIntoViewIfNeeded();
      expect(await violationsOf(page), name).toEqual([]);
      expect(await isTooWide(page), name).toBe(false);
      await takePicture(page, name);
    }
    await action.click();
    await page.getByText("1 to 2 of 2").waitFor();
    await using ns = await connect("connect", { uri: gateway.uri });
    const table = await ns.queryTable({ id: ["prices"] }).toTable();
    expect(table.schema.fields.map(({ type }) => String(type))).toEqual([
      ...["Int8", "Uint64", "Timestamp<MICROSECOND, UTC>", "Decimal[38e+10]", "Utf8"],
    ]);
    expect(table.getChild("hash")?.get(0)).toBe(2n ** 64n - 1n);
    expect(table.getChild("name")?.toArray()).toEqual(["é", null]);

    await page.getByRole("button", { name: "Add rows" }).click();
    await dropFile(
      page,
      "more.jsonl",
      '{"id":3,"hash":1,"at":"2026-05-04T00:00:00Z","price":0.00000000001}\n',
    );
    await page
      .getByRole("dialog")
      .getByRole("alert")
      .getByText(/column "price", line 1/)
      .waitFor();
    await dropFile(page, "more.jsonl", '{"id":3,"price":0.0000000001}\n');
    await page.getByRole("dialog").getByText("0.0000000001").waitFor();
    await takePicture(page, "import-append");
    await page.getByRole("dialog").getByRole("button", { name: "Import", exact: true }).click();
    await page.getByRole("dialog").waitFor({ state: "detached" });
    expect((await ns.countTableRows({ id: ["prices"] })).count).toBe(3n);
  });

  test("of more rows than the gateway takes is refused before they are sent", async (t) => {
    const gateway = await startGateway("--max-upload-size", "1MiB");
    t.onTestFinished(() => gateway.close());
    const page = await openPage(t);
    const sent: string[] = [];
    page.on("request", (request) => sent.push(request.url().split("/").at(-1) ?? ""));
    const refused = page
      .getByRole("alert")
      .getByText(/more than 1\.0 MB, which the gateway takes in an upload/);
    const numbers = Int32Array.from({ length: 300_000 }, (_, at) => at);
    for (const [name, content] of [
      ["numbers.csv", `n\n${numbers.join("\n")}`],
      ["numbers.arrow", tableToIPC(tableFromArrays({ n: numbers }), "file")],
    ] as const) {
      await page.goto(`${gateway.uri}/console/?${name}#/`);
      await page.getByText("Import a file").waitFor();
      await dropFile(page, name, content);
      await page.getByRole("button", { name: "Import", exact: true }).click();
      await refused.waitFor();
      await takePicture(page, `import-too-large-${name}`);
    }
    expect(sent).not.toContain("CreateTable");
  });

  test("is followed by queries whose limit is told, and a restore that asks first", async (t) => {
    const gateway = await startGateway();
    t.onTestFinished(() => gateway.close());
    await using ns = await connect("connect", { uri: gateway.uri });
    await ns.createTable(
      { id: ["t"] },
      Array.from({ length: 25 }, (_, id) => ({ id, x: id / 3 })),
    );
    await ns.insertIntoTable({ id: ["t"] }, [{ id: 25, x: 0.1234567891 }]);
    const page = await openPage(t);
    await page.goto(`${gateway.uri}/console/#/table/query/t`);
    await page.getByRole("button", { name: "Search" }).click();
    await page.getByText(/^10 rows in .*; the limit cut more that match/).waitFor();
    const next = page.getByRole("button", { name: "Next" });
    await next.click();
    await page.getByText("11 to 20").waitFor();
    await next.click();
    await page.getByText("21 to 26").waitFor();
    await page.getByText("0.1234567891").waitFor();
    expect(await next.isDisabled()).toBe(true);
    await takePicture(page, "query-page-3");
    await page.getByRole("link", { name: "Versions" }).click();
    const restore = page.getByRole("button", { name: "Restore", exact: true }).last();
    await restore.click();
    await page
      .getByRole("dialog")
      .getByText(/Rows, columns and indices become those of version 1/)
      .waitFor();
    await takePicture(page, "restore");
    expect(await violationsOf(page)).toEqual([]);
    await page.keyboard.press("Escape");
    const count = async () => (await ns.countTableRows({ id: ["t"] })).count;
    expect(await count()).toBe(26n);
    await restore.click();
    await page.getByRole("dialog").getByRole("button", { name: "Restore version 1" }).click();
    await expect.poll(count).toBe(25n);
    await page.getByRole("dialog").waitFor({ state: "detached" });
  });
});
