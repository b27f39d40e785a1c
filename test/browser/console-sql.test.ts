import { readFile } from "node:fs/promises";
import type { Page } from "playwright-core";
import { beforeAll, describe, expect, test } from "vitest";
import { connect } from "../../src/client/index.ts";
import { startGateway } from "../clients/support/gateway.ts";
import { openPage } from "./chromium.ts";
import { buildConsole, DESK, isTooWide, PHONE, TABLET, takePicture, violationsOf } from "./console-page.ts";

beforeAll(buildConsole);

/** Waits until Enter accepts the name: for 75 ms after they show, the editor takes no key for its completions. */
async function optionToAccept(page: Page, name: string): Promise<void> {
  await page.getByRole("option", { name, exact: true }).waitFor();
  await page.waitForTimeout(100);
}

describe("SQL in the console", () => {
  test("completes names, runs a statement, shows its plan, keeps it in the address and saves its rows", async (t) => {
    const gateway = await startGateway();
    t.onTestFinished(() => gateway.close());
    await using ns = await connect("connect", { uri: gateway.uri });
    await ns.createNamespace({ id: ["team"] });
    await ns.createTable(
      { id: ["team", "people"] },
      Array.from({ length: 300 }, (_, id) => ({ id, name: `person ${id}`, age: id % 90 })),
    );
    await ns.createTable({ id: ["orders"] }, [{ person: 1, price: 2.5 }]);
    const page = await openPage(t);
    await page.setViewportSize(DESK);
    await page.goto(`${gateway.uri}/console/`);
    await page.getByRole("link", { name: "SQL" }).click();
    const editor = page.getByRole("textbox", { name: "Statement" });
    await editor.click();
    await page.keyboard.type("SELECT * FROM team.peo");
    await optionToAccept(page, "people");
    await takePicture(page, "sql-completion-light-1440");
    const described = page.waitForResponse(/DescribeTable/);
    await page.keyboard.press("Enter");
    await described;
    await page.keyboard.type(" AS p WHERE p.na");
    await optionToAccept(page, "name");
    await page.keyboard.press("Enter");
    await page.keyboard.type(" <> 'x' AND age < 200 -- all");
    await page.keyboard.press("Control+Enter");
    await page.getByText(/^The first 200 rows in .*; the result has more$/).waitFor();
    expect(decodeURIComponent(new URL(page.url()).hash.replaceAll("+", " "))).toContain(
      "SELECT * FROM team.people AS p WHERE p.name <> 'x' AND age < 200 -- all",
    );
    for (const [size, scheme] of [
      [DESK, "light"],
      [TABLET, "dark"],
      [PHONE, "light"],
    ] as const) {
      await page.setViewportSize(size);
      await page.emulateMedia({ colorScheme: scheme });
      expect(await violationsOf(page), scheme + size.width).toEqual([]);
      expect(await isTooWide(page), scheme + size.width).toBe(false);
      await takePicture(page, `sql-${scheme}-${size.width}`);
    }
    await page.setViewportSize(DESK);
    await page.getByRole("button", { name: "Export" }).click();
    await page.getByRole("dialog").getByLabel("Rows").selectOption("all");
    const saved = page.waitForEvent("download");
    await page.getByRole("dialog").getByRole("button", { name: "Export", exact: true }).click();
    const lines = (await readFile(await (await saved).path(), "utf8")).trimEnd().split("\n");
    expect([lines.length, lines[0]]).toEqual([301, "id,name,age"]);

    await page.getByRole("button", { name: "Show the plan" }).click();
    await page
      .getByRole("region", { name: "Plan" })
      .getByText("LANCE_SCAN")
      .or(page.locator(".plan-step"))
      .first()
      .waitFor();
    await page.emulateMedia({ colorScheme: "dark" });
    await takePicture(page, "sql-plan-dark-1440");
    expect(await violationsOf(page)).toEqual([]);
  });

  test("opens a statement from an address without running it, and reports where it is wrong", async (t) => {
    const gateway = await startGateway();
    t.onTestFinished(() => gateway.close());
    const page = await openPage(t);
    await page.setViewportSize(DESK);
    await page.goto(`${gateway.uri}/console/#/sql?statement=SELEC+1`);
    const editor = page.getByRole("textbox", { name: "Statement" });
    await editor.getByText("SELEC 1").waitFor();
    expect(await page.getByRole("alert").count()).toBe(0);
    await page.getByRole("button", { name: "Run" }).click();
    await page
      .getByRole("alert")
      .getByText(/syntax error at or near "SELEC"/)
      .waitFor();
    await takePicture(page, "sql-error-light-1440");
    expect(await violationsOf(page)).toEqual([]);
    await editor.fill("SELECT count(*) FROM range(100000000000) a, range(1000) b");
    await page.getByRole("button", { name: "Run" }).click();
    await page.getByRole("button", { name: "Cancel" }).click();
    await page.getByText(/A table is named by its namespace/).waitFor();
    await page.getByText("Statements of this tab: 2").click();
    await page.getByRole("button", { name: "SELEC 1" }).click();
    await editor.getByText("SELEC 1").waitFor();
    await takePicture(page, "sql-history-light-1440");
    await page.getByRole("button", { name: "Forget them" }).click();
    expect(await page.getByText("Statements of this tab").count()).toBe(0);
  });
});
