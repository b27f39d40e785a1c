import { expect, test } from "vitest";
import { startServer } from "./fixture.ts";

const documents = { json: async () => '{"openapi":"3.1.1"}', file: async (name: string) => `the ${name}` };

test("the documents are served under their addresses, and only to be read", async () => {
  await using server = await startServer({ documents });
  for (const [path, type, text] of [
    ["/openapi.json", "application/json; charset=utf-8", '{"openapi":"3.1.1"}'],
    ["/docs", "text/html; charset=utf-8", "the index.html"],
    ["/docs/docs.js", "text/javascript; charset=utf-8", "the docs.js"],
    ["/docs/docs.css", "text/css; charset=utf-8", "the docs.css"],
  ]) {
    const answer = await fetch(`${server.url}${path}`);
    expect([answer.status, answer.headers.get("content-type"), await answer.text()]).toEqual([
      200,
      type,
      text,
    ]);
    const written = await fetch(`${server.url}${path}`, { method: "POST" });
    expect([written.status, written.headers.get("allow")], path).toEqual([405, "GET, HEAD"]);
  }
});

test("other sites may link to the documents, and the page may load and call its own origin alone", async () => {
  await using server = await startServer({ documents });
  const headers = { "sec-fetch-site": "cross-site" };
  for (const path of ["/openapi.json", "/docs"])
    expect((await fetch(`${server.url}${path}`, { headers })).status, path).toBe(200);
  const policy = (await fetch(`${server.url}/docs`)).headers.get("content-security-policy");
  expect(policy).toMatch(/^default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'/);
  expect(policy).not.toMatch(/unsafe|https?:/);
});
