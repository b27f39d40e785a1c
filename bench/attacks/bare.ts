// A server that answers every request with nothing, and that nobody attacks: how long its answers take is the machine's doing.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

const server = createServer((_request, response) => response.end());
server.listen(0, "127.0.0.1", () => console.log((server.address() as AddressInfo).port));
