// A server with empty answers that nobody attacks: its response times show the machine's share.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

const server = createServer((_request, response) => response.end());
server.listen(0, "127.0.0.1", () => console.log((server.address() as AddressInfo).port));
