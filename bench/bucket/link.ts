// A link to an object store: delays each request and records it. GET /-/requests returns the records and forgets them.
// Arguments: the store's port, and the delay in milliseconds.
import { Agent, createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { LinkRequest } from "./trace.ts";

const [port, delayMs] = process.argv.slice(2).map(Number);
const agent = new Agent({ keepAlive: true });
let records: { kind: string; key: string; start: number; end?: number }[] = [];

/** Names a request as the service's documentation does, with the key or the prefix that it is about. */
function describe({ method = "", url = "", headers }: IncomingMessage): { kind: string; key: string } {
  const { pathname, searchParams } = new URL(url, "http://store");
  const key = decodeURIComponent(pathname);
  if (searchParams.has("list-type"))
    return { kind: "LIST", key: `${key}/${searchParams.get("prefix") ?? ""}` };
  if (headers["if-none-match"] === "*") return { kind: "PUT if absent", key };
  if (headers["x-amz-copy-source"] !== undefined) return { kind: "COPY", key };
  return { kind: method, key };
}

function takeRecords(): LinkRequest[] {
  const now = performance.now();
  const taken = records.map(({ end = now, ...record }) => ({ ...record, end }));
  records = records.filter(({ end }) => end === undefined);
  return taken;
}

function forward(incoming: IncomingMessage, outgoing: ServerResponse): void {
  const record: (typeof records)[number] = { ...describe(incoming), start: performance.now() };
  records.push(record);
  outgoing.on("close", () => {
    record.end = performance.now();
  });
  const { method, url: path, headers } = incoming;
  // The signature covers the link's address, which the store therefore gets as its own.
  setTimeout(() => {
    const onward = request({ host: "127.0.0.1", port, method, path, headers, agent }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.rawHeaders);
      answer.pipe(outgoing);
    });
    onward.on("error", () => outgoing.destroy());
    incoming.pipe(onward);
  }, delayMs);
}

const server = createServer((incoming, outgoing) => {
  if (incoming.url === "/-/requests") outgoing.end(JSON.stringify(takeRecords()));
  else forward(incoming, outgoing);
});
server.keepAliveTimeout = 0;
server.listen(0, "127.0.0.1", () => console.log((server.address() as AddressInfo).port));
