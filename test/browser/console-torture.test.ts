import type { Page } from "playwright-core";
import { beforeAll, expect, test } from "vitest";
import { connect } from "../../src/client/index.ts";
import { CSV_FILES, JSON_FILES, type TortureFile } from "../cli/import/torture.ts";
import { startGateway } from "../clients/support/gateway.ts";
import { runCommand } from "../support/run-command.ts";
import { openPage } from "./chromium.ts";
import { buildConsole, dropFile } from "./console-page.ts";

beforeAll(buildConsole);

/** Chooses in the form what the flags of the command line choose. */
async function choose(page: Page, { flags = [] }: TortureFile): Promise<void> {
  for (const [at, flag] of flags.entries()) {
    const value = flags[at + 1] ?? "";
    if (flag === "--encoding")
      await page.getByLabel("Encoding of the text").selectOption(value === "latin1" ? "windows-1252" : value);
    if (flag === "--round") await page.getByLabel("Round numbers with more digits").check();
    if (flag === "--type") {
      const [column = "", type = ""] = value.split("=");
      await page.getByLabel(`Type of ${column}`).selectOption(type);
    }
  }
}

test("the console stores every value of a file that tools get wrong, or says where it cannot, as the command line does", async (t) => {
  const gateway = await startGateway();
  t.onTestFinished(() => gateway.close());
  await using ns = await connect("connect", { uri: gateway.uri });
  const page = await openPage(t);
  let number = 0;
  for (const file of [...CSV_FILES, ...JSON_FILES]) {
    const [table, label] = [`t${++number}`, `${file.format}: ${file.name}`];
    // Another address, so that the page begins anew.
    await page.goto(`${gateway.uri}/console/?${table}#/`);
    await page.getByText("Import a file").waitFor();
    await dropFile(page, `${table}.${file.format}`, file.content);
    const action = page.getByRole("button", { name: "Import", exact: true });
    const alert = page.locator(".drop-zone ~ [role=alert]");
    await choose(page, file);
    await page.locator(".drop-zone ~ [role=alert], .drop-zone ~ .grid-frame").first().waitFor();
    if (file.refused !== undefined) {
      await expect
        .poll(() => alert.allTextContents(), { message: label })
        .toEqual([expect.stringMatching(file.refused)]);
      expect(await action.isDisabled(), label).toBe(true);
      continue;
    }
    await expect.poll(() => action.isEnabled(), { message: label }).toBe(true);
    await action.click();
    await expect.poll(() => page.url(), { message: label }).toContain(`/table/rows/${table}`);
    const { schema } = await ns.queryTable({ id: [table], filter: "false", k: 1 }).toTable();
    expect(
      schema.fields.map(({ type }) => String(type)),
      label,
    ).toEqual(file.types);
    const text = await runCommand(["export", table, "-", "--format", "jsonl", "--uri", gateway.uri]);
    expect(text, label).toBe(`${file.rows?.join("\n")}\n`);
  }
  expect((await ns.listTables({})).tables).toHaveLength(
    [...CSV_FILES, ...JSON_FILES].filter(({ refused }) => refused === undefined).length,
  );
});
