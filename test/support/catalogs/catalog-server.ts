import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** A request that a simulation has received. */
export interface CatalogRequest {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingMessage["headers"];
  readonly body: Record<string, unknown>;
}

/** An answer of a simulation: a status with an object, a body as it is, or none at all. */
export type CatalogAnswer =
  | { readonly status: number; readonly body?: object | string; readonly headers?: Record<string, string> }
  | "reset"
  | "silent";

/** A server that simulates a catalog. */
export interface CatalogServer {
  readonly url: string;
  readonly requests: CatalogRequest[];
  /** Answers instead of the simulation, before it does its work; undefined lets it. Default: it always does. */
  before: ((request: CatalogRequest) => CatalogAnswer | undefined) | undefined;
  /** Replaces the answer of work that is done. Default: it stays. */
  after: ((request: CatalogRequest, answer: CatalogAnswer) => CatalogAnswer) | undefined;
  close(): Promise<void>;
}

/** Starts a server that answers as a function says. */
export async function startCatalogServer(
  answer: (request: CatalogRequest) => CatalogAnswer,
): Promise<CatalogServer> {
  const http = createServer(async (incoming, response) => {
    let text = "";
    for await (const piece of incoming) text += piece;
    const { pathname, searchParams } = new URL(incoming.url ?? "", "http://simulated");
    const request: CatalogRequest = {
      method: incoming.method ?? "",
      path: pathname,
      query: searchParams,
      headers: incoming.headers,
      body: text.startsWith("{") ? JSON.parse(text) : Object.fromEntries(new URLSearchParams(text)),
    };
    server.requests.push(request);
    const early = server.before?.(request);
    const done = early ?? answer(request);
    send(response, early === undefined ? (server.after?.(request, done) ?? done) : done);
  });
  await new Promise<void>((listening) => http.listen(0, "127.0.0.1", listening));
  const server: CatalogServer = {
    url: `http://127.0.0.1:${(http.address() as AddressInfo).port}`,
    requests: [],
    before: undefined,
    after: undefined,
    async close() {
      http.closeAllConnections();
      await new Promise((closed) => http.close(closed));
    },
  };
  return server;
}

function send(response: ServerResponse, answer: CatalogAnswer): void {
  if (answer === "silent") return;
  if (answer === "reset") {
    response.destroy();
    return;
  }
  const { status, body, headers = {} } = answer;
  response.writeHead(status, { "content-type": "application/json", ...headers });
  response.end(typeof body === "string" ? body : body === undefined ? "" : JSON.stringify(body));
}

/** Returns a page of entries, and the token of the next one. */
export function pageOf<T>(entries: readonly T[], token: string | null, size: string | null) {
  const start = Number(token ?? "0");
  const end = size === null ? entries.length : start + Number(size);
  return { page: entries.slice(start, end), next: end < entries.length ? String(end) : undefined };
}
