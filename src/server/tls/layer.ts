import { constants } from "node:crypto";
import type { Socket } from "node:net";
import { createServer, type TLSSocket } from "node:tls";
import type { ClientCertificate } from "../../namespace/call/call.ts";
import { carrierOf } from "../../runtime/internals/tls-carrier.ts";
import { peerOf, setCertificate } from "../../wires/arrival.ts";
import { LONGEST_ROUND_TRIP_MS } from "../connections/drain-session.ts";
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
  /** Called for each connection with a certificate when the authorities of clients change. */
  onStale(socket: TLSSocket): void;
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

/** Reason for calls on a connection that its client keeps although the server ends it. */
const STALE = "was checked before the trusted authorities changed: connect again";

/** Protocols that clients may choose (ALPN); the server prefers the first. */
export const ALPN_PROTOCOLS = ["h2", "http/1.1"];

/**
 * Creates the layer of TLS 1.2 and 1.3. A connection keeps the certificate with which it began when the files change.
 *
 * Where clients are asked for a certificate, they need not have one, and the layer stores it on the socket with the reason why it
 * is not trusted, if there is one: callers then get an answer that they can read. When the authorities change, such connections
 * are stale, and their certificates count for another round trip only, which calls need that the client has already sent.
 */
export function createTlsLayer(identity: TlsIdentity, { onSecure, onFailed, onStale }: TlsEvents): TlsLayer {
  const { material, asksClients } = identity;
  let authorities = material.ca;
  const shaking = new Set<Socket>();
  const certified = new Set<TLSSocket>();
  // This server never listens: connections come as its event `connection`.
  const server = createServer(
    {
      ...{ ...SETTINGS, cert: material.cert, key: material.key, ca: material.ca },
      ...{ ALPNProtocols: ALPN_PROTOCOLS, requestCert: asksClients, rejectUnauthorized: false },
    },
    (socket) => {
      shaking.delete(carrierOf(socket));
      const certificate = asksClients ? clientCertificateOf(socket) : undefined;
      if (certificate !== undefined) {
        setCertificate(socket, certificate);
        certified.add(socket);
        socket.on("close", () => certified.delete(socket));
      }
      onSecure(socket);
    },
  );
  server.on("tlsClientError", onFailed);
  identity.onChange(({ cert, key, ca }) => {
    server.setSecureContext({ ...SETTINGS, cert, key, ca });
    if (ca === authorities) return;
    authorities = ca;
    // A handshake trusts the authorities with which it began.
    for (const socket of shaking) socket.destroy();
    const stale = [...certified];
    for (const socket of stale) onStale(socket);
    setTimeout(() => stale.forEach(distrust), LONGEST_ROUND_TRIP_MS).unref();
  });
  return {
    accept(socket) {
      // A client that goes away in the middle of a handshake is noticed at once.
      socket.allowHalfOpen = false;
      if (asksClients) {
        shaking.add(socket);
        socket.on("close", () => shaking.delete(socket));
      }
      server.emit("connection", socket);
    },
  };
}

function distrust(socket: TLSSocket): void {
  const { certificate } = peerOf(socket);
  if (certificate !== undefined) setCertificate(socket, { ...certificate, fault: STALE });
}

/**
 * Returns the certificate that a client has shown in its handshake; undefined if it has shown none. A certificate that no
 * trusted authority has signed, or whose time is over, has a fault.
 */
function clientCertificateOf(socket: TLSSocket): ClientCertificate | undefined {
  const shown = socket.getPeerX509Certificate();
  if (shown === undefined) return undefined;
  const named = nameIn(shown.subjectAltName ?? "");
  const fault = socket.authorized ? named.fault : (reasonOf(socket.authorizationError) ?? "is not trusted");
  return {
    fault,
    name: named.name,
    fingerprint: shown.fingerprint256.replaceAll(":", "").toLowerCase(),
    expires: Date.parse(shown.validTo),
  };
}

/** Node documents an error and gives its code. */
function reasonOf(error: unknown): string | undefined {
  if (error instanceof Error) return error.message;
  return typeof error === "string" ? error : undefined;
}

/** The kinds of names that can be those of a caller, the most specific first, and their form. */
const KINDS = [
  ["URI", /^[a-z][a-z0-9+.-]*:[!-~]+$/i],
  ["DNS", /^[a-z0-9*_-]+(?:\.[a-z0-9_-]+)*$/i],
  ["email", /^[^\s"@/:]+@[^\s"@/:]+$/],
] as const;

/** A name as Node writes it: its kind, and its text, which is in quotes if it could be mistaken for several names. */
const ENTRY = /(?:^|, )([A-Za-z ]+):("(?:[^"\\]|\\.)*"|[^",]*)(?=, |$)/gy;

/**
 * Returns the name of a client: the URI of its certificate, or else its first DNS name, or else its first e-mail address.
 *
 * @param text the subject's alternative names as Node writes them
 * @returns a fault for a certificate with several URIs, of which none is the right one, and for names that cannot be read.
 */
export function nameIn(text: string): Pick<ClientCertificate, "name" | "fault"> {
  const entries = [...text.matchAll(ENTRY)];
  if (entries.reduce((length, [whole]) => length + whole.length, 0) !== text.length)
    return { fault: "its names cannot be read" };
  for (const [kind, form] of KINDS) {
    const names = entries.flatMap(([, its, value = ""]) => (its === kind ? [value] : []));
    const [name] = names;
    if (name === undefined) continue;
    if (kind === "URI" && names.length > 1) return { fault: "it has several URIs" };
    // A DNS name with the text of a URI is not that URI.
    if (!form.test(name)) return { fault: `its name of the kind ${kind} cannot be read` };
    return { name: kind === "DNS" ? name.toLowerCase() : name };
  }
  return {};
}
