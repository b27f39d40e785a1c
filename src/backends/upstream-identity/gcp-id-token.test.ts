import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, describe, test, vi } from "vitest";
import { callUnary, sendJson, startUpstream } from "../../../test/fixtures/upstreams/rest.ts";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import { isLanceError } from "../../namespace/errors.ts";

const { describeTable } = LanceNamespaceService.method;
const closers: (() => unknown)[] = [];
afterAll(() => Promise.all(closers.map((close) => close())));

const encoded = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");

/** A metadata server of a machine, as Google documents it; its tokens are numbered. */
async function startMetadata() {
  const [asked, forProject]: [string[], string[]] = [[], []];
  const state = { status: 200 };
  const server = createServer(({ url = "", headers }, response) => {
    response.setHeader("metadata-flavor", "Google");
    assert.equal(headers["metadata-flavor"], "Google");
    if (url.includes("/project/")) forProject.push(url);
    if (!url.includes("/identity")) {
      response.end("default");
      return;
    }
    asked.push(url);
    const claims = { aud: "catalog", exp: Math.floor(Date.now() / 1000) + 3_600, jti: asked.length };
    response.writeHead(state.status).end(`${encoded({ alg: "none" })}.${encoded(claims)}.signature`);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  closers.push(
    () => server.close(),
    () => server.closeAllConnections(),
  );
  vi.stubEnv("GOOGLE_APPLICATION_CREDENTIALS", undefined);
  vi.stubEnv("CLOUDSDK_CONFIG", "/nowhere");
  vi.stubEnv("GCE_METADATA_HOST", `127.0.0.1:${(server.address() as AddressInfo).port}`);
  return { asked, forProject, state };
}

const numberOf = (authorization = "") =>
  JSON.parse(Buffer.from(authorization.split(".")[1] ?? "", "base64url").toString()).jti;

describe("Google identity tokens", () => {
  test("come from the machine's metadata, once for many calls and again before they end", async ({
    onTestFinished,
  }) => {
    onTestFinished(() => {
      vi.restoreAllMocks();
      vi.unstubAllEnvs();
    });
    const { asked, forProject, state } = await startMetadata();
    const identity = { kind: "gcp-id-token", audience: "https://catalog.example.com" } as const;
    const upstream = await startUpstream((response) => sendJson(response, {}), { identity });
    closers.push(upstream.close);
    await Promise.all(Array.from({ length: 5 }, () => callUnary(upstream, describeTable)));
    assert.equal(asked.length, 1);
    assert.match(
      asked[0] ?? "",
      /service-accounts\/default\/identity\?.*audience=https:\/\/catalog.example.com/,
    );
    const start = Date.now();
    vi.spyOn(Date, "now").mockImplementation(() => start + 3_500_000);
    await callUnary(upstream, describeTable);
    await callUnary(upstream, describeTable);
    const numbers = upstream.seen.map(({ headers }) => numberOf(headers.authorization));
    assert.deepEqual(numbers, [1, 1, 1, 1, 1, 2, 2]);
    state.status = 403;
    vi.spyOn(Date, "now").mockImplementation(() => start + 20_000_000);
    await assert.rejects(callUnary(upstream, describeTable), (error) =>
      isLanceError(error, "ServiceUnavailable"),
    );
    assert.equal(upstream.seen.length, 7);
    assert.deepEqual(forProject, []);
  });
});
