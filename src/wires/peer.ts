import type { Socket } from "node:net";
import type { CallInit, ClientCertificate } from "../namespace/call/call.ts";
import { carrierOf } from "../runtime/internals/tls-carrier.ts";

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
