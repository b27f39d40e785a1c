import type { Socket } from "node:net";

/** Returns the accepted connection below a socket, which is the socket itself without TLS. */
export function carrierOf(socket: Socket): Socket {
  return (socket as Socket & { readonly _parent?: Socket | null })._parent ?? socket;
}
