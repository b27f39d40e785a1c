import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { DescMethod } from "@bufbuild/protobuf";
import { onTestFinished } from "vitest";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import type { Call } from "../../namespace/call/call.ts";
import { type ErrorName, LanceError } from "../../namespace/errors.ts";
import type { Backend } from "../../namespace/lance-namespace.ts";
import { callOf, callUnary, sendJson } from "./fixture.ts";
import { createRestBackend } from "./index.ts";
import type { RestBackendOptions } from "./options.ts";

export const { describeTable, dropTable, createTable, insertIntoTable, queryTable } =
  LanceNamespaceService.method;

export type Answer = (response: ServerResponse, count: number, request: IncomingMessage) => void;

export interface Peer {
  readonly port: number;
  readonly uri: string;
  /** The requests so far. */
  count: number;
  onConnection(listener: () => void): void;
  close(): void;
}

/** Starts a server that answers as it is told, by the number of its request. The end of the test closes it. */
export async function peer(answer: Answer, port = 0, host = "127.0.0.1"): Promise<Peer> {
  const server = createServer((request, response) => {
    self.count += 1;
    const { count } = self;
    request.resume().on("end", () => answer(response, count, request));
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject).listen(port, host, () => resolve());
  });
  const { port: found } = server.address() as AddressInfo;
  const self: Peer = {
    port: found,
    uri: `http://${host}:${found}`,
    count: 0,
    onConnection: (listener) => server.on("connection", listener),
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
  onTestFinished(() => self.close());
  return self;
}

/** Opens a backend of a server. The end of the test closes it. */
export async function backendOf(options: Partial<RestBackendOptions> & Pick<RestBackendOptions, "uri">) {
  const backend = await createRestBackend({ log: callOf(describeTable).log, ...options });
  // By now a name has been looked up.
  await new Promise(setImmediate);
  onTestFinished(() => backend.close());
  return backend;
}

export const well: Answer = (response) => sendJson(response, { location: "l" });
export const unavailable: Answer = (response) => response.writeHead(503, { "retry-after": "0" }).end();
export const reset: Answer = (response) => response.destroy();
export const silent: Answer = () => {};

/** Answers the first requests in one way and the rest well. */
export const first =
  (times: number, bad: Answer): Answer =>
  (response, count, request) =>
    (count <= times ? bad : well)(response, count, request);

export async function outcome(backend: Backend, method: DescMethod, overrides: Partial<Call> = {}) {
  const call = callOf(method, overrides);
  const error = await callUnary({ backend } as never, method, {}, call).then(
    () => undefined,
    (thrown: unknown) => thrown as LanceError,
  );
  return { seen: error?.kind ?? "answer", decisions: call.decisions, error };
}

export const KEY = { "idempotency-key": "k" };

export function half(response: ServerResponse): void {
  response.writeHead(200, { "content-length": 10 }).write("{}", () => response.destroy());
}

export const failing = (name: ErrorName) => (error: unknown) => error instanceof LanceError && error.is(name);
