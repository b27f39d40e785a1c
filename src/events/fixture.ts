import { randomBytes, randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import type { TestContext } from "vitest";
import type { ChangeEvent } from "../namespace/change-event.ts";
import type { ChangeType } from "../namespace/operations/change-types.ts";

/** A delivery as a receiver sees it. */
export interface Received {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  readonly event: ChangeEvent;
}

/** Secret of tests, in the form of the file. */
export const SECRET = `whsec_${randomBytes(32).toString("base64")}`;

/** Starts a receiver. @param answer answers a delivery. Default: 204. */
export async function startReceiver(
  { onTestFinished }: Pick<TestContext, "onTestFinished">,
  answer: (response: ServerResponse, received: Received) => void = (response) =>
    void response.writeHead(204).end(),
) {
  const received: Received[] = [];
  const server = createServer((request, response) => {
    void text(request).then((body) => {
      const { url: path = "", headers } = request;
      const delivery = { path, headers, body, event: JSON.parse(body) as ChangeEvent };
      received.push(delivery);
      answer(response, delivery);
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}/hook`, port, received };
}

/** Returns an event about an object. */
export function eventOf(object: string, type: ChangeType = "table.created", to?: string): ChangeEvent {
  return {
    specversion: "1.0",
    id: randomUUID(),
    source: "/test",
    type: `lance.gateway.${type}`,
    subject: object,
    time: new Date().toISOString(),
    datacontenttype: "application/json",
    data: { object, to, operation: "CreateTable", outcome: "done", request: "r" },
  };
}
