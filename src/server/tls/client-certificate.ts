import type { TLSSocket } from "node:tls";
import type { ClientCertificate } from "../../namespace/call/call.ts";

/**
 * Returns the certificate that a client has shown in its handshake; undefined if it has shown none. A certificate that no
 * trusted authority has signed, or whose time is over, has a fault.
 */
export function clientCertificateOf(socket: TLSSocket): ClientCertificate | undefined {
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
