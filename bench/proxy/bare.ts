// The minimal proxy on Node's server and undici: it passes bodies and statuses on without looking at them.
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Pool } from "undici";

const JSON_HEADERS = { "content-type": "application/json" };
const upstream = new Pool(process.argv[2] as string, { connections: 64, pipelining: 1, allowH2: false });

function forward(path: string, method: string, body: Buffer, response: ServerResponse): void {
  const pieces: Buffer[] = [];
  let status = 502;
  upstream.dispatch(
    { path, method, headers: JSON_HEADERS, body },
    {
      onRequestStart() {},
      onResponseStart(_controller, statusCode) {
        status = statusCode;
      },
      onResponseData(_controller, piece) {
        pieces.push(piece);
      },
      onResponseEnd() {
        const answer = Buffer.concat(pieces);
        response.writeHead(status, { ...JSON_HEADERS, "content-length": answer.byteLength }).end(answer);
      },
      onResponseError() {
        response.writeHead(status).end();
      },
    },
  );
}

const server = createServer((request, response) => {
  const pieces: Buffer[] = [];
  request.on("data", (piece: Buffer) => pieces.push(piece));
  request.on("end", () =>
    forward(request.url ?? "/", request.method ?? "GET", Buffer.concat(pieces), response),
  );
});
server.listen(0, "127.0.0.1", () => console.log((server.address() as AddressInfo).port));
