// A server of node alone with empty answers. Where nobody attacks it, its response times show the machine's share; under an attack, node's.
import { createServer } from "node:http";
import { performServerHandshake } from "node:http2";
import { type AddressInfo, createServer as createPort, type Socket } from "node:net";
import { sniff } from "../../src/server/port/entrance.ts";

/** As the gateway has it. */
const SETTINGS = { maxConcurrentStreams: 100 };

const http1 = createServer((_request, response) => response.end());
const ignore = () => {};

function serveHttp2(socket: Socket): void {
  socket.allowHalfOpen = false;
  const session = performServerHandshake(socket, { settings: SETTINGS });
  session.on("error", ignore);
  session.on("stream", (stream) => {
    stream.on("error", ignore);
    if (!stream.destroyed && !stream.closed) stream.respond({ ":status": 200 }, { endStream: true });
  });
}

const port = createPort({ allowHalfOpen: true, noDelay: true }, (socket) => {
  socket.on("error", ignore);
  sniff(socket, (protocol) => {
    if (protocol === "http2") return serveHttp2(socket);
    http1.emit("connection", socket);
    socket.resume();
  });
});
port.listen(0, "127.0.0.1", () => console.log((port.address() as AddressInfo).port));
