import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/** A TCP proxy between a client and a server under test. */
export interface Proxy {
  readonly port: number;
  close(): void;
}

/** Handles the bytes of one direction of a proxy; `send` passes them on. */
export type Relay = (piece: Buffer, send: (piece: Buffer) => Promise<void>) => Promise<void>;

/** Starts a proxy that passes the client's bytes through one relay and the server's through another. */
export async function startProxy(target: number, toServer: Relay, toClient: Relay): Promise<Proxy> {
  const sockets = new Set<Socket>();
  const server = createServer({ noDelay: true }, (client) => {
    const upstream = connect({ host: "127.0.0.1", port: target, noDelay: true });
    for (const [from, to, relay] of [
      [client, upstream, toServer],
      [upstream, client, toClient],
    ] as const) {
      sockets.add(from);
      from.on("error", () => to.destroy());
      from.on("close", () => sockets.delete(from));
      forward(from, to, relay).then(
        () => to.end(),
        () => to.destroy(),
      );
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    close() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

/** Passes bytes on as they come. */
export const straight: Relay = (piece, send) => send(piece);

/** Passes bytes on one at a time. */
export const bytewise: Relay = async (piece, send) => {
  for (let at = 0; at < piece.length; at += 1) await send(piece.subarray(at, at + 1));
};

async function forward(from: Socket, to: Socket, relay: Relay): Promise<void> {
  const send = (piece: Buffer) =>
    new Promise<void>((resolve, reject) => {
      to.write(piece, (error) => (error ? reject(error) : setImmediate(resolve)));
    });
  for await (const piece of from) await relay(piece as Buffer, send);
}

/** Returns a relay that delays every byte, as a long distance does, and counts the bytes that are in flight. */
export function delayed(milliseconds: number): { relay: Relay; mostUnderWay(): number } {
  let underWay = 0;
  let most = 0;
  let last: Promise<void> = Promise.resolve();
  const relay: Relay = async (piece, send) => {
    underWay += piece.length;
    most = Math.max(most, underWay);
    const elapsed = new Promise<void>((resolve) => setTimeout(resolve, milliseconds));
    last = Promise.all([last, elapsed]).then(() => {
      underWay -= piece.length;
      return send(piece);
    });
    // The next piece does not wait for this one; a failure appears when the connection ends.
    last.catch(() => {});
  };
  return { relay, mostUnderWay: () => most };
}
