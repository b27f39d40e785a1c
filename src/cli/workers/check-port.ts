import { once } from "node:events";
import { createServer } from "node:net";
import type { PortAddress } from "../../server/port/listen.ts";

/**
 * Checks that nobody listens on an address. Workers share their port, also with another process of the same user, which
 * would then get a part of the connections.
 *
 * @throws Error of node:net, if the address is in use or does not exist
 */
export async function checkIsFree({ host, port }: PortAddress): Promise<void> {
  if (port !== 0) await listenOnce({ host, port });
}

/** Whether the system spreads the connections of a port over several listeners. */
export async function canSharePort(host: string): Promise<boolean> {
  try {
    await listenOnce({ host, port: 0, reusePort: true });
    return true;
  } catch (error) {
    if (UNSUPPORTED.includes((error as NodeJS.ErrnoException).code ?? "")) return false;
    throw error;
  }
}

const UNSUPPORTED = ["ENOTSUP", "EINVAL", "ENOPROTOOPT"];

async function listenOnce(where: PortAddress): Promise<void> {
  const server = createServer().listen(where);
  await once(server, "listening");
  server.close();
  await once(server, "close");
}
