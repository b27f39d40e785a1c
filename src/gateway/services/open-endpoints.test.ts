import { expect, test } from "vitest";
import { openDocument } from "./open-endpoints.ts";

test("the document names the ways of authentication, is made once, and can be turned off", async () => {
  const documents = openDocument({ auth: ["api-key"] });
  const text = await documents?.json();
  expect(JSON.parse(text ?? "").security).toEqual([{ ApiKey: [] }]);
  expect(await documents?.json()).toBe(text);
  expect(openDocument({ noDocs: true })).toBeUndefined();
});

test("the page comes with its script and its style", async () => {
  const documents = openDocument({});
  expect(await documents?.file("index.html")).toContain('src="/docs/docs.js"');
  expect(await documents?.file("docs.js")).toContain("fetch(");
  expect(await documents?.file("docs.css")).toContain("color-scheme");
});
