import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { gzipSync } from "node:zlib";
import { describe, it, type TestContext } from "vitest";
import { fetchIssuerKeys } from "./discovery.ts";

type Answer = (response: ServerResponse, origin: string) => void;

const DOCUMENT = "/.well-known/openid-configuration";
const json =
  (value: (origin: string) => unknown): Answer =>
  (response, origin) =>
    response.end(JSON.stringify(value(origin)));
const document = (changes: object = {}) =>
  json((issuer) => ({ issuer, jwks_uri: `${issuer}/keys`, ...changes }));

/** Starts an issuer that answers each path in its own way, and returns its address and the requests that it gets. */
async function startIssuer({ onTestFinished }: TestContext, answers: Readonly<Record<string, Answer>>) {
  const asked: string[] = [];
  const server = createServer(({ url = "" }, response) => {
    asked.push(url);
    const answer = answers[url];
    if (answer === undefined) response.writeHead(404).end();
    else answer(response, origin);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { origin, asked };
}

describe("the keys of an issuer at its address", () => {
  it("are found by the discovery document", async (context) => {
    const keys = { keys: [] };
    const answers = { [DOCUMENT]: document(), "/keys": json(() => keys) };
    const { origin, asked } = await startIssuer(context, answers);
    assert.deepEqual(await fetchIssuerKeys({ issuer: origin }), keys);
    assert.deepEqual(asked, [DOCUMENT, "/keys"]);
  });

  it("are fetched from the configured address, without a discovery document", async (context) => {
    const { origin, asked } = await startIssuer(context, { "/k": json(() => ({ keys: [] })) });
    await fetchIssuerKeys({ issuer: "https://login.example.com", jwksUri: `${origin}/k` });
    assert.deepEqual(asked, ["/k"]);
  });

  it("are not waited for when they never end", async (context) => {
    const answers: Record<string, Answer> = { "/keys": (response) => response.write('{"keys": [') };
    const { origin } = await startIssuer(context, answers);
    const settings = async () => ({ timeoutMs: 50 });
    const fetching = fetchIssuerKeys({ issuer: origin, jwksUri: `${origin}/keys`, settings });
    await assert.rejects(fetching, /abort|timeout/i);
  });

  const megabytes = JSON.stringify({ keys: [], pad: "x".repeat(4 * 2 ** 20) });
  const wrong: Readonly<Record<string, readonly [Readonly<Record<string, Answer>>, RegExp, string[]]>> = {
    "a document of another issuer": [
      { [DOCUMENT]: document({ issuer: "https://other.example.com" }) },
      /another issuer/,
      [DOCUMENT],
    ],
    "a document that redirects": [
      {
        [DOCUMENT]: (response) => response.writeHead(302, { location: "/moved" }).end(),
        "/moved": document(),
      },
      /fetch failed/,
      [DOCUMENT],
    ],
    "keys that redirect": [
      {
        [DOCUMENT]: document(),
        "/keys": (response) => response.writeHead(307, { location: "/moved" }).end(),
        "/moved": json(() => ({ keys: [] })),
      },
      /fetch failed/,
      [DOCUMENT, "/keys"],
    ],
    "a document without keys": [{ [DOCUMENT]: document({ jwks_uri: undefined }) }, /no jwks_uri/, [DOCUMENT]],
    "keys at an address without TLS": [
      { [DOCUMENT]: document({ jwks_uri: "http://169.254.169.254/keys" }) },
      /without TLS/,
      [DOCUMENT],
    ],
    "keys in a file": [
      { [DOCUMENT]: document({ jwks_uri: "file:///etc/passwd" }) },
      /without TLS/,
      [DOCUMENT],
    ],
    "keys of megabytes": [
      { [DOCUMENT]: document(), "/keys": (response) => response.end(megabytes) },
      /larger than/,
      [DOCUMENT, "/keys"],
    ],
    "keys that unpack to megabytes": [
      {
        [DOCUMENT]: document(),
        "/keys": (response) => {
          response.writeHead(200, { "content-encoding": "gzip" });
          response.end(gzipSync(megabytes));
        },
      },
      /larger than/,
      [DOCUMENT, "/keys"],
    ],
    "keys that are no JSON": [
      { [DOCUMENT]: document(), "/keys": (response) => response.end("<html>") },
      /JSON/,
      [DOCUMENT, "/keys"],
    ],
    "keys that are missing": [{ [DOCUMENT]: document() }, /answers 404/, [DOCUMENT, "/keys"]],
  };
  for (const [what, [answers, message, requests]] of Object.entries(wrong)) {
    it(`are refused: ${what}`, async (context) => {
      const { origin, asked } = await startIssuer(context, answers);
      await assert.rejects(fetchIssuerKeys({ issuer: origin }), message);
      assert.deepEqual(asked, requests);
    });
  }
});
