import type { Socket } from "node:net";
import { addressKey } from "../../namespace/call/caller-key.ts";
import { peerOf } from "../../wires/peer.ts";

/** Addresses of clients by their sockets: thousands of streams may have the same one. */
const addresses = new WeakMap<Socket, string>();

/** Returns the address of a client, or its network of IPv6; an empty text after its connection has ended. */
export function clientAddress(socket: Socket | undefined): string {
  if (socket === undefined) return "";
  const address = addresses.get(socket) ?? addressKey(peerOf(socket));
  addresses.set(socket, address);
  return address;
}
