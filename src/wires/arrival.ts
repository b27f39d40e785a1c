import type { Socket } from "node:net";
import type { Call, CallInit } from "../namespace/call/call.ts";
import type { Refusal } from "../pipeline/records/refusals.ts";
import { addressOf } from "./address.ts";
import { peerOf } from "./peer.ts";

/** A request from its arrival on, where the server keeps account of it; wires and refusals add what becomes of it. */
export interface Arrival {
  /** Network address of the client, beyond the proxies that the operator trusts. */
  readonly client: string | undefined;
  /** The call that it has become. */
  call: Call | undefined;
  /** Reason why it has not become one. */
  refusal: Refusal | undefined;
}

/** No client can write it, and it costs less than an entry of a weak map, which the collector has to look after. */
const ARRIVAL = Symbol("arrival of the request");

interface WithArrival {
  [ARRIVAL]?: Arrival;
}

/** Stores the arrival of the request with these headers. */
export function setArrival(headers: object, arrival: Arrival): void {
  (headers as WithArrival)[ARRIVAL] = arrival;
}

/** Returns the arrival of the request with these headers; undefined if the server does not keep account. */
export function arrivalOf(headers: object): Arrival | undefined {
  return (headers as WithArrival)[ARRIVAL];
}

/** Reports that a request has become a call. */
export function noteCall(headers: object, call: Call): void {
  const arrival = arrivalOf(headers);
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
  const { peer, certificate } = peerOf(socket);
  return { address: addressOf(headers), peer: arrivalOf(headers)?.client ?? peer, certificate };
}
