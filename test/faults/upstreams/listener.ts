import { once } from "node:events";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

/** A listener that can stop and restart on its port, with its connections. */
export interface Listener {
  readonly port: number;
  /** Stops listening and cuts all connections. */
  stop(): void;
  /** Stops, and listens again after a while. */
  restart(awayMs: number): void;
  /** Waits until it listens again. */
  back(): Promise<void>;
}

/** Listens on a free port of this machine. */
export async function createListener(onConnection: (socket: Socket) => void): Promise<Listener> {
  const sockets = new Set<Socket>();
  let server: Server | undefined;
  let port = 0;
  let back = Promise.resolve();
  let stopped = false;

  async function start(): Promise<void> {
    const opened = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
      sockets.add(socket);
      socket.on("error", () => {}).once("close", () => sockets.delete(socket));
      onConnection(socket);
    });
    server = opened;
    opened.listen(port, "127.0.0.1");
    await once(opened, "listening");
    ({ port } = opened.address() as AddressInfo);
  }

  function cut(): void {
    server?.close();
    for (const socket of sockets) socket.destroy();
  }

  await start();
  return {
    get port() {
      return port;
    },
    stop() {
      stopped = true;
      cut();
    },
    restart(awayMs) {
      cut();
      back = sleep(awayMs).then(() => (stopped ? undefined : start()));
    },
    back: () => back,
  };
}
