import { constants } from "node:crypto";
import type { Socket } from "node:net";
import { createServer, type TLSSocket } from "node:tls";
import { setCertificate } from "../../wires/peer.ts";
import { clientCertificateOf } from "./client-certificate.ts";
import type { TlsIdentity } from "./identity.ts";

/** Decrypts connections. */
export interface TlsLayer {
  /** Begins the handshake on a connection whose first bytes have been put back. */
  accept(socket: Socket): void;
}

/** Events of {@link createTlsLayer}. */
export interface TlsEvents {
  /** Called after a handshake. */
  onSecure(socket: TLSSocket): void;
  /** Called for a handshake that fails. */
  onFailed(error: NodeJS.ErrnoException): void;
}

/** Those of TLS 1.3, and of TLS 1.2 those that keep the past secret when the key leaks, and that HTTP/2 allows. */
const CIPHERS = [
  "TLS_AES_128_GCM_SHA256",
  "TLS_AES_256_GCM_SHA384",
  "TLS_CHACHA20_POLY1305_SHA256",
  "ECDHE-ECDSA-AES128-GCM-SHA256",
  "ECDHE-RSA-AES128-GCM-SHA256",
  "ECDHE-ECDSA-AES256-GCM-SHA384",
  "ECDHE-RSA-AES256-GCM-SHA384",
  "ECDHE-ECDSA-CHACHA20-POLY1305",
  "ECDHE-RSA-CHACHA20-POLY1305",
].join(":");

const SETTINGS = {
  minVersion: "TLSv1.2",
  ciphers: CIPHERS,
  secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
} as const;

/** Protocols that clients may choose (ALPN); the server prefers the first. */
export const ALPN_PROTOCOLS = ["h2", "http/1.1"];

/**
 * Creates the layer of TLS 1.2 and 1.3. A connection keeps the certificate with which it began when the files change.
 *
 * Where clients are asked for a certificate, they need not have one, and the layer stores it on the socket with the reason why it
 * is not trusted, if there is one: callers then get an answer that they can read.
 */
export function createTlsLayer(identity: TlsIdentity, { onSecure, onFailed }: TlsEvents): TlsLayer {
  const { material, asksClients } = identity;
  // This server never listens: connections come as its event `connection`.
  const server = createServer(
    {
      ...{ ...SETTINGS, cert: material.cert, key: material.key, ca: material.ca },
      ...{ ALPNProtocols: ALPN_PROTOCOLS, requestCert: asksClients, rejectUnauthorized: false },
    },
    (socket) => {
      const certificate = asksClients ? clientCertificateOf(socket) : undefined;
      if (certificate !== undefined) setCertificate(socket, certificate);
      onSecure(socket);
    },
  );
  server.on("tlsClientError", onFailed);
  identity.onChange(({ cert, key, ca }) => server.setSecureContext({ ...SETTINGS, cert, key, ca }));
  return {
    accept(socket) {
      // A client that goes away in the middle of a handshake is noticed at once.
      socket.allowHalfOpen = false;
      server.emit("connection", socket);
    },
  };
}

/** Returns the accepted connection below a socket, which is the socket itself without TLS. */
export function carrierOf(socket: Socket): Socket {
  return (socket as Socket & { readonly _parent?: Socket | null })._parent ?? socket;
}
