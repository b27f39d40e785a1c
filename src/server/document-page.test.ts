import { expect, test } from "vitest";
import { startServer } from "./fixture.ts";

test("the document is served under its address, and only to be read", async () => {
  await using server = await startServer({ readDocument: async () => '{"openapi":"3.1.1"}' });
  const answer = await fetch(`${server.url}/openapi.json`, { headers: { "sec-fetch-site": "cross-site" } });
  expect([answer.status, answer.headers.get("content-type")]).toEqual([
    200,
    "application/json; charset=utf-8",
  ]);
  expect(await answer.json()).toEqual({ openapi: "3.1.1" });
  const written = await fetch(`${server.url}/openapi.json`, { method: "POST" });
  expect([written.status, written.headers.get("allow")]).toEqual([405, "GET, HEAD"]);
});
