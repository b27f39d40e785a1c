import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Locator } from "playwright-core";
import { beforeAll, describe, expect, test } from "vitest";
import { issueKey } from "../../src/auth/api-keys/key-file.ts";
import { rolePolicies } from "../../src/auth/cedar/read-policies.ts";
import type { Role } from "../../src/namespace/call/principal.ts";
import { startGateway } from "../clients/support/gateway.ts";
import { openPage } from "./chromium.ts";
import { buildConsole, DESK, isTooWide, PHONE, TABLET, takePicture, violationsOf } from "./console-page.ts";

beforeAll(buildConsole);

/** Returns where an element ends, in pixels from the left of the page. */
async function rightEdge(element: Locator): Promise<number> {
  const { x, width } = (await element.boundingBox()) ?? { x: Number.NaN, width: 0 };
  return x + width;
}

describe("keys, roles and policies in the console", () => {
  test("an owner creates and revokes keys, and asks what a caller may do; others do not see the page", async (t) => {
    const folder = await mkdtemp(join(tmpdir(), "lance-gateway-access-"));
    t.onTestFinished(() => rm(folder, { recursive: true }));
    const [file, policies] = [join(folder, "keys.json"), join(folder, "policies")];
    const issue = async (name: string, role: Role, groups: string[] = []) =>
      (await issueKey(file, { name, role, groups, scope: [], lifetimeMs: 90 * 86_400_000 })).text;
    const [owner, reader] = [await issue("ann", "owner"), await issue("dashboards", "reader", ["bi"])];
    await mkdir(policies);
    await writeFile(join(policies, "roles.cedar"), rolePolicies());
    await writeFile(
      join(policies, "team.cedar"),
      '@id("no-salaries") forbid (principal, action, resource == Table::"team$salaries");\n',
    );
    const gateway = await startGateway(
      ...["--auth", "api-key", "--api-keys-file", file, "--policy-dir", policies],
    );
    t.onTestFinished(() => gateway.close());
    const page = await openPage(t);
    await page.setViewportSize(DESK);
    const signIn = async (key: string) => {
      await page.goto(`${gateway.uri}/console/`);
      await page.getByLabel("API key").fill(key);
      await page.getByRole("button", { name: "Sign in" }).click();
    };
    await signIn(owner);
    await page.getByRole("link", { name: "Access" }).click();
    await page.getByRole("rowheader", { name: "dashboards" }).waitFor();
    await page.getByRole("button", { name: "Create a key" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Name of the caller").fill("nightly");
    await dialog.getByLabel("Role").selectOption("writer");
    await dialog.getByLabel("Restrict it").fill("team");
    await takePicture(page, "access-create-light-1440");
    expect(await violationsOf(page)).toEqual([]);
    await dialog.getByRole("button", { name: "Create" }).click();
    const secret = (await dialog.locator(".secret").textContent()) ?? "";
    expect(secret).toMatch(/^lgw_/);
    await takePicture(page, "access-created-light-1440");
    await dialog.getByRole("button", { name: "Done" }).click();
    await page.getByRole("rowheader", { name: "nightly" }).waitFor();
    expect(await page.locator("main").textContent()).not.toContain(secret);

    await page
      .getByRole("combobox", { name: "Caller", exact: true })
      .selectOption({ label: `nightly (${secret.slice(4, 16)})` });
    await page.getByLabel("Operation").selectOption("InsertIntoTable");
    await page.getByLabel("Object").fill("other/t");
    await page.getByRole("button", { name: "Try" }).click();
    await page.getByText("No: the key is restricted to team, and the object is not in it.").waitFor();
    await page.getByRole("combobox", { name: "Caller", exact: true }).selectOption("");
    await page.getByLabel("Name of the caller").fill("bea");
    await page.getByLabel("Role of the caller").selectOption("reader");
    await page.getByLabel("Operation").selectOption("QueryTable");
    await page.getByLabel("Object").fill("team/salaries");
    await page.getByRole("button", { name: "Try" }).click();
    await page.getByText("No: forbidden by no-salaries.").waitFor();
    await page.getByText("no-salaries", { exact: true }).click();
    for (const [size, scheme] of [
      [DESK, "light"],
      [TABLET, "dark"],
      [PHONE, "light"],
    ] as const) {
      await page.setViewportSize(size);
      await page.emulateMedia({ colorScheme: scheme });
      expect(await violationsOf(page), scheme + size.width).toEqual([]);
      expect(await isTooWide(page), scheme + size.width).toBe(false);
      const [table, button] = [
        page.getByRole("region", { name: "API keys and their facts" }),
        page.getByRole("button", { name: /^Revoke .* of dashboards/ }),
      ];
      expect(await rightEdge(button), scheme + size.width).toBeLessThanOrEqual(await rightEdge(table));
      await takePicture(page, `access-${scheme}-${size.width}`);
    }
    await page.setViewportSize(DESK);
    await page.getByRole("button", { name: /^Revoke .* of nightly$/ }).click();
    await takePicture(page, "access-revoke-light-1440");
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: /^Revoke .* of nightly$/ }).click();
    await dialog.getByRole("button", { name: /^Revoke/ }).click();
    await page.getByRole("rowheader", { name: "nightly" }).waitFor({ state: "detached" });

    await page.getByRole("button", { name: "Sign out" }).click();
    await signIn(reader);
    await page.getByRole("link", { name: "SQL" }).waitFor();
    expect(await page.getByRole("link", { name: "Access" }).count()).toBe(0);
    await page.goto(`${gateway.uri}/console/#/access`);
    await page.getByText(/ListKeys \(admin\) on the root is not allowed/).waitFor();
  });
});
