import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { describe, expect, onTestFinished, test } from "vitest";
import { fakeService, memoryLog } from "../../../test/fixtures/wires/grpc.ts";
import { createServer, type ServerOptions } from "../server.ts";
import type { ConsoleIssuer } from "./console-pages.ts";
import { createReadiness } from "./probes.ts";

const SCRIPT = "console.log('it runs')";

/** Writes a console as the build does, with a page and a script. */
function writeConsole(directory: string): void {
  mkdirSync(join(directory, "assets"), { recursive: true });
  writeFileSync(join(directory, "index.html"), "<!doctype html><title>Console</title>");
  writeFileSync(join(directory, "assets", "page-a1b2c3d4.js"), SCRIPT);
  writeFileSync(join(directory, "assets", "page-a1b2c3d4.js.gz"), gzipSync(SCRIPT));
  writeFileSync(join(directory, "assets", "page-a1b2c3d4.js.br"), brotliCompressSync(SCRIPT));
}

/** Starts a server with a console, and returns the function that asks it. */
async function serve({
  isBuilt = true,
  issuers = [],
  ...options
}: Partial<ServerOptions> & { isBuilt?: boolean; issuers?: readonly ConsoleIssuer[] } = {}) {
  const directory = mkdtempSync(join(tmpdir(), "console-"));
  if (isBuilt) writeConsole(directory);
  const { log } = memoryLog();
  const server = createServer({
    ...{ service: fakeService(), readiness: createReadiness(), log },
    console: { directory, signIn: () => ({ methods: ["token"], hasDatabases: false, issuers }) },
    ...options,
  });
  onTestFinished(async () => void (await server.close({ graceMs: 0 })));
  const { port } = await server.listen({ host: "127.0.0.1", port: 0 });
  const ask = (path: string, headers: Record<string, string> = {}, method = "GET") =>
    new Promise<{ status: number | undefined; headers: Record<string, unknown>; body: string }>(
      (resolve, reject) => {
        request({ host: "127.0.0.1", port, path, headers, method }, async (answer) =>
          resolve({ status: answer.statusCode, headers: answer.headers, body: await text(answer) }),
        )
          .on("error", reject)
          .end();
      },
    );
  return { ask, directory };
}

const BROWSER = { accept: "text/html,application/xhtml+xml" };

describe("the console", () => {
  test("has a page that runs nothing but its own files", async () => {
    const { ask } = await serve();
    const { status, headers, body } = await ask("/console/", BROWSER);
    expect([status, body]).toEqual([200, "<!doctype html><title>Console</title>"]);
    const policy = String(headers["content-security-policy"]);
    expect(policy).toMatch(/^default-src 'none'; script-src 'self';/);
    expect(policy).toMatch(/frame-ancestors 'none'/);
    expect(policy).not.toMatch(/unsafe|https?:|\*/);
    expect(headers["x-content-type-options"]).toBe("nosniff");
  });

  test("is where browsers are led to, below any path, and programs are not", async () => {
    const { ask } = await serve();
    const { status, headers } = await ask("/", BROWSER);
    expect([status, headers["location"]]).toEqual([302, "console/"]);
    expect((await ask("/console", BROWSER)).headers["location"]).toBe("console/");
    const listed = await ask("/", { accept: "*/*" });
    expect([listed.status, listed.headers["content-type"]]).toEqual([200, "text/plain"]);
    expect((await ask("/", BROWSER, "POST")).status).toBe(404);
  });

  test("lets browsers keep files whose names change with their content, and ask for the page again", async () => {
    const { ask } = await serve();
    const script = await ask("/console/assets/page-a1b2c3d4.js");
    expect(script.headers["cache-control"]).toBe("public, max-age=31536000, immutable");
    const page = await ask("/console/");
    expect(page.headers["cache-control"]).toBe("no-cache");
    const known = await ask("/console/", { "if-none-match": String(page.headers["etag"]) });
    expect([known.status, known.body]).toEqual([304, ""]);
  });

  test.each([
    ["gzip, br", "br"],
    ["gzip", "gzip"],
    ["br;q=0, gzip;q=0.5", "gzip"],
    ["identity", undefined],
  ])("sends a file to a browser that accepts %s with the coding %s", async (accepted, coding) => {
    const { ask } = await serve();
    const { headers, body } = await ask("/console/assets/page-a1b2c3d4.js", { "accept-encoding": accepted });
    expect([headers["content-encoding"], headers["vary"]]).toEqual([coding, "accept-encoding"]);
    if (coding === undefined) expect(body).toBe(SCRIPT);
  });

  test("has no files but those of its build", async () => {
    const { ask } = await serve();
    for (const path of [
      "nothing",
      "../index.html",
      "%2e%2e/%2e%2e/etc/passwd",
      "assets",
      "assets/page-a1b2c3d4.js.gz",
    ])
      expect((await ask(`/console/${path}`)).status, path).toBe(404);
    expect((await ask("/console/", {}, "POST")).status).toBe(405);
  });

  test("asks browsers to wait until it is built, and is there then", async () => {
    const { ask, directory } = await serve({ isBuilt: false });
    const { status, headers } = await ask("/console/", BROWSER);
    expect([status, headers["refresh"]]).toEqual([503, "2"]);
    writeConsole(directory);
    expect((await ask("/console/", BROWSER)).status).toBe(200);
  });

  test("opens from links of other pages, under the hosts that are served", async () => {
    const { ask } = await serve();
    expect((await ask("/console/", { "sec-fetch-site": "cross-site" })).status).toBe(200);
    expect((await ask("/console/", { host: "rebound.example" })).status).toBe(403);
  });

  test("tells where to sign in, and may call that issuer and no other", async () => {
    const issuers = ["https://login.example/a", "https://login.example/b"].map((issuer) => ({
      ...{ issuer, clientId: "console", scope: "openid" },
    }));
    const { ask } = await serve({ issuers });
    const { headers } = await ask("/console/", BROWSER);
    expect(headers["content-security-policy"]).toContain("; connect-src 'self' https://login.example; ");
    const { body, headers: own } = await ask("/console/sign-in.json");
    expect(JSON.parse(body)).toEqual({ methods: ["token"], hasDatabases: false, issuers });
    expect([own["content-type"], own["cache-control"]]).toEqual([
      "application/json; charset=utf-8",
      "no-store",
    ]);
    expect((await ask("/console/sign-in.json", {}, "POST")).status).toBe(405);
  });

  test("does not exist when it is turned off", async () => {
    const { ask } = await serve({ console: undefined });
    expect((await ask("/console/", BROWSER)).status).toBe(404);
    expect((await ask("/", BROWSER)).headers["location"]).toBeUndefined();
  });
});
