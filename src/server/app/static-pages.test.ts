import { type IncomingMessage, request } from "node:http";
import { buffer } from "node:stream/consumers";
import { brotliDecompressSync, gunzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { startServer } from "../../../test/fixtures/server/server.ts";

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

test("the documents are read once, compressed as clients accept, and not sent to clients that have them", async () => {
  const read: string[] = [];
  const file = async (name: string) => {
    read.push(name);
    return `the ${name}`;
  };
  await using server = await startServer({ documents: { json: () => file("json"), file } });
  const ask = async (path: string, headers: Record<string, string> = {}, method = "GET") => {
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    request(`${server.url}${path}`, { headers, method }, resolve).on("error", reject).end();
    const answer = await promise;
    return { status: answer.statusCode, headers: answer.headers, body: await buffer(answer) };
  };
  for (const [path, text] of [
    ["/openapi.json", "the json"],
    ["/docs", "the index.html"],
  ] as const) {
    const plain = await ask(path);
    expect(String(plain.body)).toBe(text);
    expect(plain.headers).toMatchObject({ "cache-control": "no-cache", vary: "accept-encoding" });
    const [br, gzip] = [
      await ask(path, { "accept-encoding": "gzip, br" }),
      await ask(path, { "accept-encoding": "gzip, br;q=0" }),
    ];
    expect([br.headers["content-encoding"], String(brotliDecompressSync(br.body))]).toEqual(["br", text]);
    expect([gzip.headers["content-encoding"], String(gunzipSync(gzip.body))]).toEqual(["gzip", text]);
    const head = await ask(path, {}, "HEAD");
    expect([head.status, head.headers["content-length"], head.body.length]).toEqual([
      200,
      `${text.length}`,
      0,
    ]);
    const etag = String(plain.headers.etag);
    for (const tags of [etag, `"other", W/${etag}`, "*"]) {
      const known = await ask(path, { "if-none-match": tags });
      expect([known.status, known.headers.etag, known.body.length], tags).toEqual([304, etag, 0]);
    }
    expect((await ask(path, { "if-none-match": '"other"' })).status).toBe(200);
  }
  expect(read).toEqual(["json", "index.html"]);
});

test("a document that cannot be read is read again for the next request", async () => {
  let calls = 0;
  const json = async () => {
    calls += 1;
    if (calls === 1) throw new Error("too many open files");
    return "{}";
  };
  await using server = await startServer({ documents: { ...documents, json } });
  expect((await fetch(`${server.url}/openapi.json`)).status).toBe(500);
  expect((await fetch(`${server.url}/openapi.json`)).status).toBe(200);
});
