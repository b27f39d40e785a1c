import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { build } from "esbuild";
import { describe, it } from "vitest";
import { EXPECTED } from "./runtimes/session.ts";
import { startGateway } from "./support/gateway.ts";

const PAGE = join(import.meta.dirname, "runtimes", "page.ts");
const TIMEOUT_MS = 60_000;

/** The script of the page as a bundler makes it for browsers. */
async function bundle(): Promise<ReadonlyMap<string, string>> {
  const { outputFiles } = await build({
    entryPoints: [PAGE],
    bundle: true,
    splitting: true,
    write: false,
    format: "esm",
    platform: "browser",
    outdir: "/",
  });
  return new Map(outputFiles.map(({ path, text: script }) => [path, script]));
}

/** Serves the page and waits for its report. */
async function openSite(scripts: ReadonlyMap<string, string>) {
  const report = Promise.withResolvers<string>();
  const server = createServer(async (request, response) => {
    const path = request.url?.split("?", 1)[0] ?? "";
    if (path === "/report") report.resolve(await text(request));
    const script = scripts.get(path);
    response.setHeader("content-type", script === undefined ? "text/html" : "text/javascript");
    response.end(script ?? '<!doctype html><script type="module" src="/page.js"></script>');
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    origin: `http://127.0.0.1:${port}`,
    report: report.promise,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

describe("the client of this package, in a browser", () => {
  it("lists a namespace, writes a table and reads it, from a page of another origin", async () => {
    const site = await openSite(await bundle());
    const gateway = await startGateway("--cors-origin", site.origin);
    const profile = mkdtempSync(join(tmpdir(), "lance-gateway-browser-"));
    const url = `${site.origin}/?gateway=${encodeURIComponent(gateway.uri)}`;
    // Chromium's own sandbox does not work for root, as which containers run.
    const args = ["--headless", "--no-sandbox", "--disable-gpu", `--user-data-dir=${profile}`, url];
    const browser = spawn("chromium", args, { stdio: "ignore" });
    const failed = new Promise<never>((_, reject) => {
      const timer = setTimeout(() => reject(new Error("the page did not report")), TIMEOUT_MS);
      timer.unref();
      browser.once("error", (cause) => {
        reject(new Error('"chromium" is not installed; Debian has it as a package', { cause }));
      });
    });
    try {
      const report = await Promise.race([site.report, failed]);
      assert.equal(report, `rest: ${EXPECTED}\nconnect: ${EXPECTED}`);
    } finally {
      browser.kill();
      site.close();
      await gateway.close();
      rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
    }
  });
});
