// The smallest usable proxy on Node's server and undici: it passes headers on in both directions, bounds bodies, and ends the
// work of the upstream when its client leaves. It looks at no path and no body.
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { type Dispatcher, Pool } from "undici";

const MAX_BYTES = 16 * 1024 * 1024;
/** Headers of a single connection (RFC 9110, section 7.6.1), and those that the client of the upstream writes itself. */
const HOP_BY_HOP =
  /^(?:connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|host|content-length|expect)$/i;

const upstream = new Pool(process.argv[2] as string, { connections: 64, pipelining: 1, allowH2: false });

/** Returns the headers that pass, names and values in turn. */
function endToEnd(raw: readonly (string | Buffer)[]): string[] {
  const kept: string[] = [];
  for (let at = 0; at < raw.length; at += 2) {
    const name = String(raw[at]);
    if (!HOP_BY_HOP.test(name)) kept.push(name, String(raw[at + 1]));
  }
  return kept;
}

function forward(request: IncomingMessage, body: Buffer, response: ServerResponse): void {
  const pieces: Buffer[] = [];
  let [status, size] = [502, 0];
  let headers: string[] = [];
  let running: Dispatcher.DispatchController | undefined;
  response.on("close", () => {
    if (!response.writableFinished) running?.abort(new Error("the client disconnected"));
  });
  upstream.dispatch(
    {
      path: request.url ?? "/",
      method: request.method ?? "GET",
      headers: endToEnd(request.rawHeaders),
      body,
    },
    {
      onRequestStart(controller) {
        running = controller;
        if (response.destroyed) controller.abort(new Error("the client disconnected"));
      },
      onResponseStart({ rawHeaders }, statusCode) {
        status = statusCode;
        headers = endToEnd((rawHeaders ?? []) as Buffer[]);
      },
      onResponseData(controller, piece) {
        size += piece.length;
        if (size > MAX_BYTES) controller.abort(new Error("the answer is too large"));
        else pieces.push(piece);
      },
      onResponseEnd() {
        const answer = pieces.length === 1 ? (pieces[0] as Buffer) : Buffer.concat(pieces);
        headers.push("content-length", String(answer.byteLength));
        response.writeHead(status, headers).end(answer);
      },
      onResponseError() {
        if (!response.headersSent) response.writeHead(502).end();
      },
    },
  );
}

const server = createServer((request, response) => {
  const pieces: Buffer[] = [];
  let size = 0;
  request.on("data", (piece: Buffer) => {
    size += piece.length;
    if (size <= MAX_BYTES) pieces.push(piece);
    else if (!response.headersSent) response.writeHead(413, { connection: "close" }).end();
  });
  request.on("end", () => {
    if (size > MAX_BYTES) return;
    forward(request, pieces.length === 1 ? (pieces[0] as Buffer) : Buffer.concat(pieces), response);
  });
});
server.listen(0, "127.0.0.1", () => console.log((server.address() as AddressInfo).port));
