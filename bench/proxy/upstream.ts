// A minimal upstream: it describes one table from memory, streams bytes and drops bytes.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

const PIECE = Buffer.alloc(256 * 1024, 1);
/**
 * The Rust adapter adds the headers of this answer to its own, including the content-length. Blanks make the length
 * true: with a wrong one its clients would wait for ever.
 */
const ADAPTERS_LENGTH = 305;
const DESCRIPTION = JSON.stringify({
  table: "events",
  namespace: ["demo"],
  location: "/data/1a2b3c4d_demo$events",
  properties: { owner: "bench" },
}).padEnd(ADAPTERS_LENGTH);
const JSON_HEADERS = { "content-type": "application/json" };
const downloadBytes = Number(process.argv[2]);

const server = createServer((request, response) => {
  request.resume();
  if (request.url?.includes("/query") === true) {
    response.writeHead(200, { "content-type": "application/vnd.apache.arrow.file" });
    let left = downloadBytes;
    const send = () => {
      while (left > 0) {
        left -= PIECE.byteLength;
        if (!response.write(PIECE)) return;
      }
      response.off("drain", send).end();
    };
    response.on("drain", send);
    request.on("end", send);
    return;
  }
  request.on("end", () => {
    const text = request.url?.includes("/insert") === true ? '{"version":2}' : DESCRIPTION;
    response.writeHead(200, { ...JSON_HEADERS, "content-length": text.length }).end(text);
  });
});
server.keepAliveTimeout = 60_000;
server.listen(0, "127.0.0.1", () => console.log((server.address() as AddressInfo).port));
