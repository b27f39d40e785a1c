import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

const PROBE_INTERVAL_MS = 50;

/**
 * A balancer of connections. It sends each connection to the next server that is ready at `/readyz`, where it stays.
 */
export interface Balancer {
  readonly port: number;
  /** Adds a server; resolves when it is ready. */
  add(port: number): Promise<void>;
  remove(port: number): void;
  close(): void;
}

/** Starts a balancer on a free port. */
export async function startBalancer(): Promise<Balancer> {
  const ready = new Map<number, boolean>();
  const sockets = new Set<Socket>();
  let turn = 0;
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
    const ports = [...ready].filter(([, isReady]) => isReady).map(([port]) => port);
    turn += 1;
    const port = ports[turn % ports.length];
    if (port === undefined) client.destroy();
    else join(client, connect({ host: "127.0.0.1", port, allowHalfOpen: true, noDelay: true }));
  });

  function join(...pair: readonly [Socket, Socket]): void {
    for (const [from, to] of [pair, pair.toReversed()] as [Socket, Socket][]) {
      sockets.add(from);
      from.on("error", () => to.resetAndDestroy());
      from.on("close", () => sockets.delete(from));
      from.pipe(to);
    }
  }

  async function probe(port: number): Promise<boolean> {
    const answer = await fetch(`http://127.0.0.1:${port}/readyz`).catch(() => undefined);
    await answer?.arrayBuffer();
    return answer?.status === 200;
  }
  async function watch(port: number): Promise<void> {
    while (ready.has(port)) {
      const isReady = await probe(port);
      if (ready.has(port)) ready.set(port, isReady);
      await sleep(PROBE_INTERVAL_MS);
    }
  }

  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    async add(port) {
      while (!(await probe(port))) await sleep(PROBE_INTERVAL_MS);
      ready.set(port, true);
      void watch(port);
    },
    remove: (port) => ready.delete(port),
    close() {
      ready.clear();
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}
