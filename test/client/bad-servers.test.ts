import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, onTestFinished, test } from "vitest";
import { connect as connectByFetch } from "../../src/client/browser.ts";
import { connect, type LanceError, type Namespace } from "../../src/client/index.ts";

/** Starts a server on a free port. The end of the test closes it. */
async function serve(answer: RequestListener): Promise<string> {
  const server = createServer(answer);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const KEY = { "headers.x-api-key": "secret" } as const;

const OPENINGS: readonly [name: string, open: (uri: string) => Promise<Namespace>][] = [
  ["rest", (uri) => connect("rest", { uri, ...KEY })],
  ["rest, over fetch", (uri) => connectByFetch("rest", { uri, ...KEY })],
  ["connect", (uri) => connect("connect", { uri, ...KEY })],
  ["connect, over fetch", (uri) => connectByFetch("connect", { uri, ...KEY })],
];

/** Returns the name of the error with which a call fails. */
const failureOf = (call: Promise<unknown>) =>
  call.then(
    () => "none",
    (error: LanceError) => error.entry.name,
  );

describe.each(OPENINGS)("%s", (_, open) => {
  test("a redirect gets no key to another server, and counts as no answer", async () => {
    let visits = 0;
    const other = await serve((_, response) => {
      visits += 1;
      response.writeHead(200, { "content-type": "application/json" }).end("{}");
    });
    for (const status of [301, 302, 307, 308]) {
      const uri = await serve((request, response) => {
        response.writeHead(status, { location: other + request.url }).end();
      });
      await using namespace = await open(uri);
      expect(await failureOf(namespace.describeTable({ id: ["t"] }))).toBe("ServiceUnavailable");
      expect(await failureOf(namespace.dropTable({ id: ["t"] }))).not.toBe("none");
    }
    expect(visits).toBe(0);
  });

  test("a change whose answer is lost has an unknown outcome, and a read may be repeated", async () => {
    const uri = await serve((request, response) => {
      request.resume().on("end", () => response.destroy());
    });
    await using namespace = await open(uri);
    expect(await failureOf(namespace.dropTable({ id: ["t"] }))).toBe("OutcomeUnknown");
    expect(await failureOf(namespace.insertIntoTable({ id: ["t"] }, new Uint8Array(8)))).toBe(
      "OutcomeUnknown",
    );
    expect(await failureOf(namespace.describeTable({ id: ["t"] }))).toBe("ServiceUnavailable");
  });
});
