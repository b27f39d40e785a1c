import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";

/** Returns a port that was free a moment ago on an address. Default: that of loopback. */
export async function freePort(address = "127.0.0.1"): Promise<number> {
  const server = createServer().listen(0, address);
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}
