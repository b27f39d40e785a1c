import assert from "node:assert/strict";
import fc from "fast-check";
import { Client } from "undici";
import { test } from "vitest";
import { SentConnection } from "./connection.ts";
import { readPlainHead } from "./head.ts";

/** Lines of heads: usual ones, those of other framings, and spellings that parsers have disagreed about. */
const LINES = [
  ..."content-type: application/json|Content-Length: 2|content-length:2|content-length: +2|content-length: 0x2".split(
    "|",
  ),
  ..."content-length: 2, 2|content-length: 3|content-length : 2|content-length: 2 |content-length:".split(
    "|",
  ),
  ..."transfer-encoding: chunked|Transfer-Encoding: identity|transfer-encoding:\tchunked|transfer_encoding: x".split(
    "|",
  ),
  ..."connection: keep-alive|Connection: Keep-Alive|connection: close|connection: upgrade|keep-alive: timeout=5".split(
    "|",
  ),
  ...' folded: 2|\tcontent-length: 3|no colon|: no name|etag: "\u00e9"|x-a:|x-a: b\rcontent-length: 3|x: a\nb: c'.split(
    "|",
  ),
  ..."x-nul: \0|x-del: \x7f|x\u00e9: 1|upgrade: h2c|trailer: x|date: now|x: \u00a0a|y: a |constructor: 1|__proto__: 1".split(
    "|",
  ),
];
const STATUS = [
  "200 OK",
  "200",
  "201 ",
  "204 No Content",
  "304 Not Modified",
  "404 n",
  "503 s",
  "100 Continue",
  "101 S",
  "2000 x",
];
const VERSIONS = ["HTTP/1.1", "HTTP/1.1", "HTTP/1.1", "HTTP/1.0", "HTTP/1.1 ", "http/1.1", "HTTP/2.0"];

const heads = fc
  .tuple(
    fc.constantFrom(...VERSIONS),
    fc.constantFrom(...STATUS),
    fc.array(fc.constantFrom(...LINES), { maxLength: 5 }),
  )
  .map(([version, status, lines]) => [`${version} ${status}`, ...lines, ""].join("\r\n"));

/** Returns what undici reads from these bytes; undefined if that fails. */
async function readByUndici(bytes: string) {
  const connection = new SentConnection(() => {});
  const client = new Client("http://127.0.0.1:1", { connect: connection.connect });
  const answer = client.request({ path: "/", method: "GET" });
  connection.add(Buffer.from(bytes, "latin1"));
  connection.add(null);
  try {
    const { statusCode, headers, body } = await answer;
    return { status: statusCode, headers: { ...headers }, body: await body.text() };
  } catch {
    return undefined;
  } finally {
    await client.destroy();
  }
}

test("accepts only heads that undici reads in the same way", { timeout: 60_000 }, async () => {
  let accepted = 0;
  await fc.assert(
    fc.asyncProperty(heads, async (text) => {
      const head = readPlainHead(text);
      if (head === undefined) return;
      accepted += 1;
      const body = "{}{}".slice(0, head.length);
      const seen = await readByUndici(`${text}\r\n${body}`);
      assert.deepEqual({ status: head.status, headers: head.headers, body }, seen);
    }),
    { numRuns: 3_000 },
  );
  assert.ok(accepted > 20, String(accepted));
});

test("returns the status, the headers and the length", () => {
  const text =
    "HTTP/1.1 200 OK\r\nContent-Type: a\r\ncontent-length: \t12\r\nKeep-Alive: timeout=5, max=9\r\n";
  assert.deepEqual(readPlainHead(text), {
    status: 200,
    headers: { "content-type": "a", "content-length": "12", "keep-alive": "timeout=5, max=9" },
    length: 12,
    keepAliveMs: 5_000,
  });
});

test("refuses heads whose end another parser could see elsewhere", () => {
  const length = "content-length: 2\r\n";
  const refused = [
    "",
    `${length}${length}`,
    `${length}transfer-encoding: chunked\r\n`,
    "transfer-encoding: chunked\r\n",
    "content-length: 2,2\r\n",
    "content-length: -2\r\n",
    "content-length: 1e1\r\n",
    "content-length : 2\r\n",
    "content-length: 2 \r\n",
    " content-length: 2\r\n",
    `x: 1\n${length}`,
    `x: 1\r${length}`,
    `x: \0\r\n${length}`,
    `x: 1\r\n folded\r\n${length}`,
    `connection: close\r\n${length}`,
  ];
  for (const lines of refused) assert.equal(readPlainHead(`HTTP/1.1 200 OK\r\n${lines}`), undefined, lines);
  for (const line of [
    "HTTP/1.0 200 OK",
    "HTTP/1.1 100 Continue",
    "HTTP/1.1 20 OK",
    "HTTP/1.1  200 OK",
    "ICY 200 OK",
  ]) {
    assert.equal(readPlainHead(`${line}\r\n${length}`), undefined, line);
  }
  assert.equal(readPlainHead(`HTTP/1.1 204 No Content\r\n${length}`), undefined);
});
