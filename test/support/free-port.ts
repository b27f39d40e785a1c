import { once } from "node:events";
import { createServer } from "node:net";

/** Ports below those that systems give to servers and connections without a port of their own, and above those of a Ray head's workers. */
const [FIRST, COUNT] = [20_000, 12_000] as const;

/** Returns a port that was free a moment ago on an address, and that only a program which names it gets. Default: the address of loopback. */
export async function freePort(address = "127.0.0.1"): Promise<number> {
  for (;;) {
    const port = FIRST + Math.floor(Math.random() * COUNT);
    const server = createServer().listen(port, address);
    const isFree = await once(server, "listening").then(
      () => true,
      () => false,
    );
    if (!isFree) continue;
    server.close();
    await once(server, "close");
    return port;
  }
}
