import { AsyncLocalStorage } from "node:async_hooks";
import { subscribe } from "node:diagnostics_channel";
import type { Socket } from "node:net";

const watchers = new AsyncLocalStorage<(socket: Socket) => void>();

let isWatching = false;

/** Connects by a library that does not show its sockets, and passes on each of them, also of later connections that it makes by itself. */
export function withSockets<T>(onSocket: (socket: Socket) => void, connect: () => T): T {
  if (!isWatching) {
    isWatching = true;
    subscribe("net.client.socket", (message) => {
      watchers.getStore()?.((message as { readonly socket: Socket }).socket);
    });
  }
  return watchers.run(onSocket, connect);
}
