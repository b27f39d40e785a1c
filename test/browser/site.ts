import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { TestContext } from "vitest";

const PAGE = '<!doctype html><script type="module" src="/page.js"></script>';

/** Serves a page and its scripts, by path, for as long as the test runs. */
export async function serveSite(
  t: TestContext,
  scripts: ReadonlyMap<string, string>,
): Promise<{ readonly origin: string }> {
  const server = createServer((request, response) => {
    const script = scripts.get(request.url ?? "");
    response.setHeader("content-type", script === undefined ? "text/html" : "text/javascript");
    response.end(script ?? PAGE);
  }).listen(0, "127.0.0.1");
  t.onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  await once(server, "listening");
  return { origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}
