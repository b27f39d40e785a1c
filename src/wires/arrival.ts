import type { Socket } from "node:net";
import type { Call, CallInit, ClientCertificate, RequestAddress } from "../namespace/call/call.ts";
import type { Refusal } from "../pipeline/records/refusals.ts";
import { carrierOf } from "../runtime/internals/tls-carrier.ts";

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

const addresses = new WeakMap<object, RequestAddress>();

/** Stores the address of a request beside its headers, where no client can write it. */
export function setAddress(headers: object, address: RequestAddress): void {
  addresses.set(headers, address);
}

/** Returns the address that the server stored for the request with these headers. */
export function addressOf(headers: object): RequestAddress | undefined {
  return addresses.get(headers);
}

const CERTIFICATE = Symbol("certificate of the client");

type CertifiedSocket = Socket & { [CERTIFICATE]?: ClientCertificate };

/** Stores the certificate of a connection's client on its socket. */
export function setCertificate(socket: Socket, certificate: ClientCertificate): void {
  (socket as CertifiedSocket)[CERTIFICATE] = certificate;
}

/**
 * Returns what a connection reveals of its client.
 *
 * @param socket a socket, or the proxy of one that node:http2 hands out; undefined after the connection has ended.
 */
export function peerOf(socket: Socket | undefined): Pick<CallInit, "peer" | "certificate"> {
  // The address of an accepted connection is read at once. Above TLS, it is lost when the client resets the connection.
  const peer = socket && carrierOf(socket).remoteAddress;
  return { peer, certificate: (socket as CertifiedSocket | undefined)?.[CERTIFICATE] };
}
