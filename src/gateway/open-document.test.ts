import { expect, test } from "vitest";
import { openDocument } from "./open-document.ts";

test("the document names the ways of authentication, is made once, and can be turned off", async () => {
  const read = openDocument({ auth: ["api-key"] });
  const text = await read?.();
  expect(JSON.parse(text ?? "").security).toEqual([{ ApiKey: [] }]);
  expect(await read?.()).toBe(text);
  expect(openDocument({ noDocs: true })).toBeUndefined();
});
