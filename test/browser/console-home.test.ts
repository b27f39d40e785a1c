import { beforeAll, describe, expect, test } from "vitest";
import { connect } from "../../src/client/index.ts";
import { startGateway } from "../clients/support/gateway.ts";
import { openPage } from "./chromium.ts";
import { buildConsole, DESK, isTooWide, PHONE, TABLET, takePicture, violationsOf } from "./console-page.ts";

beforeAll(buildConsole);

describe("the first page of the console", () => {
  test("says how the gateway is, creates sample data, and finds tables by a part of their name", async (t) => {
    const gateway = await startGateway();
    t.onTestFinished(() => gateway.close());
    const page = await openPage(t);
    await page.setViewportSize(DESK);
    await page.goto(`${gateway.uri}/console/`);
    await page.getByText("nobody, as the gateway asks for nothing").waitFor();
    const facts = await page.locator(".home-facts").textContent();
    expect(facts).toContain("Gatewayready");
    expect(facts).toMatch(/Version\d+\.\d+\.\d+/);
    expect(facts).toContain(`Storage${gateway.base}`);
    expect(await page.getByRole("button", { name: "Database" }).count()).toBe(0);
    await takePicture(page, "home-empty-light-1440");
    await page.getByRole("button", { name: "Create the sample table" }).click();
    await page.getByText("1 to 50 of 300").waitFor();
    await takePicture(page, "sample-rows-light-1440");
    await using ns = await connect("connect", { uri: gateway.uri });
    await ns.createNamespace({ id: ["shop"] });
    for (const name of ["orders", "order_lines", "people"])
      await ns.createTable({ id: ["shop", name] }, [{ id: 1 }]);
    // The tree shows what another client has created once the window gets the focus.
    await page.evaluate("dispatchEvent(new Event('focus'))");
    await page.getByRole("treeitem", { name: "shop" }).waitFor();
    await page.getByRole("link", { name: "Tables" }).click();
    await page.getByRole("cell", { name: "300" }).waitFor();
    await page.getByText("just now").waitFor();
    await page.getByLabel("Tables with this in their name").fill("RDER");
    await page.getByRole("link", { name: "shop / order_lines" }).waitFor();
    expect(await page.locator(".tables tbody tr").count()).toBe(2);
    for (const [size, scheme] of [
      [DESK, "light"],
      [TABLET, "dark"],
      [PHONE, "light"],
    ] as const) {
      await page.setViewportSize(size);
      await page.emulateMedia({ colorScheme: scheme });
      expect(await violationsOf(page)).toEqual([]);
      expect(await isTooWide(page)).toBe(false);
      await takePicture(page, `home-${scheme}-${size.width}`);
    }
    await page.setViewportSize(TABLET);
    expect(await page.getByRole("tree").isVisible()).toBe(false);
    await page.getByRole("button", { name: "Catalog" }).click();
    await page.getByRole("treeitem", { name: "sample_products" }).click();
    await page.getByText("1 to 50 of 300").waitFor();
  });
});
