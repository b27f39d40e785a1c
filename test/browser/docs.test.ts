import { expect, test } from "vitest";
import { startGateway } from "../clients/support/gateway.ts";
import { openPage } from "./chromium.ts";

test("the page of the API shows an operation and sends it, within its content security policy", async (t) => {
  const gateway = await startGateway();
  t.onTestFinished(() => gateway.close());
  const page = await openPage(t);
  const told: string[] = [];
  page.on("console", (message) => told.push(message.text()));
  await page.goto(`${gateway.uri}/docs#CreateNamespace`);
  await page.getByLabel("Filter").fill("namespace create");
  expect(await page.locator(".operation:visible").count()).toBe(1);
  const form = page.locator("#CreateNamespace form");
  await form.getByLabel("id").fill("from-the-page");
  await form.getByLabel("Body").fill('{"properties":{"a":"1"}}');
  await form.getByRole("button").click();
  await expect.poll(() => form.locator("output").textContent()).toMatch(/^POST .*\/create\n200 OK/);
  const list = `${gateway.uri}/v1/namespace/%24/list`;
  expect(await (await fetch(list)).json()).toMatchObject({ namespaces: ["from-the-page"] });
  expect(told).toEqual([]);
});
