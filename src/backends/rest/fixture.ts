import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { create, type DescMethod, type Message } from "@bufbuild/protobuf";
import { pino } from "pino";
import { beginCall } from "../../../test/support/caller.ts";
import { bodyOf } from "../../../test/support/request-body.ts";
import type { Call } from "../../namespace/call/call.ts";
import type { Backend } from "../../namespace/lance-namespace.ts";
import { createRestBackend } from "./index.ts";
import type { RestBackendOptions } from "./options.ts";

/** A request as an upstream got it. */
export interface Seen {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

/** An upstream that answers as a test says, and a backend before it. */
export interface Upstream {
  readonly backend: Backend;
  readonly uri: string;
  readonly seen: Seen[];
  close(): Promise<void>;
}

/** Answers a request whose body has been read. */
export type Answer = (response: ServerResponse, seen: Seen, index: number) => unknown;

const log = pino({ level: "silent" });

/** Starts an upstream on a free port. */
export async function startUpstream(
  answer: Answer,
  options: Partial<RestBackendOptions> = {},
): Promise<Upstream> {
  const seen: Seen[] = [];
  const server = createServer(async (request, response) => {
    const body = await bodyOf(request);
    if (body === undefined) return;
    const { method = "", url = "", headers } = request;
    const one = { method, url, headers, body };
    await answer(response, one, seen.push(one) - 1);
  });
  server.on("clientError", (_, socket) => socket.destroy());
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const uri = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const backend = await createRestBackend({ uri, log, ...options });
  return {
    backend,
    uri,
    seen,
    async close() {
      await backend.close();
      server.closeAllConnections();
      server.close();
    },
  };
}

/** Answers with JSON. */
export function sendJson(response: ServerResponse, json: unknown, status = 200): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(json));
}

/** A call as the pipeline hands it to a backend. */
export function callOf(method: DescMethod, overrides: Partial<Call> = {}): Call {
  return beginCall(method, { protocol: "rest", requestId: "request-1", id: ["n", "t"], ...overrides });
}

/** Calls an operation that has one request and one answer. */
export function callUnary(
  { backend }: Upstream,
  method: DescMethod,
  init: object = {},
  overrides: Partial<Call> = {},
): Promise<Message> {
  const operations = backend.operations as unknown as Record<
    string,
    (request: Message, call: Call) => Promise<Message>
  >;
  const handler = operations[method.localName];
  if (handler === undefined) throw new Error(`no ${method.localName}`);
  return handler(create(method.input, init as never), callOf(method, overrides));
}
