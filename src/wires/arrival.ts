import type { Socket } from "node:net";
import type { Call, CallInit } from "../namespace/call.ts";
import { addressOf } from "./address.ts";
import { peerOf } from "./peer.ts";

/** A request from its arrival on, where the server keeps account of it; wires and refusals add what becomes of it. */
export interface Arrival {
  /** Network address of the client, beyond the proxies that the operator trusts. */
  readonly client: string | undefined;
  /** The call that it has become. */
  call: Call | undefined;
}

const arrivals = new WeakMap<object, Arrival>();

/** Stores the arrival of the request with these headers. */
export function setArrival(headers: object, arrival: Arrival): void {
  arrivals.set(headers, arrival);
}

/** Reports that a request has become a call. */
export function noteCall(headers: object, call: Call): void {
  const arrival = arrivals.get(headers);
  if (arrival !== undefined) arrival.call = call;
}

/**
 * Returns what the server knows of the sender of a request.
 *
 * @param headers headers of the request, as node has made them.
 * @param socket a socket, or the proxy of one that node:http2 hands out; undefined after the connection has ended.
 */
export function originOf(
  headers: object,
  socket: Socket | undefined,
): Pick<CallInit, "address" | "peer" | "certificate"> {
  const connected = peerOf(socket);
  const client = arrivals.get(headers)?.client;
  return { address: addressOf(headers), ...connected, ...(client !== undefined && { peer: client }) };
}
