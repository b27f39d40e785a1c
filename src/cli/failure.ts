import type { LanceError } from "../client/exports.ts";
import { UsageError } from "../config/option-spec.ts";
import { redactText } from "../log/redact.ts";

/** A failure as `--json` prints it. */
interface FailureFacts {
  /** Name in the table of errors, `Usage` for wrong usage, or `Failure`. */
  readonly kind: string;
  readonly message: string;
  /** Address of the server that the failure is about. */
  readonly address?: string;
  /** Code of the system or of the library of TLS, for example `ECONNREFUSED`. */
  readonly cause?: string;
}

/** Failure of a call, with the address of the server. */
export class CallFailure extends Error {
  readonly facts: FailureFacts;

  constructor(error: LanceError, address: string) {
    const facts = factsOf(error, address);
    super(`${facts.message} (${facts.kind})`, { cause: error });
    this.facts = facts;
  }
}

/** What the codes of the system and of TLS mean to people. */
const CAUSES: Readonly<Record<string, string>> = {
  ECONNREFUSED: "nothing listens there",
  ECONNRESET: "the connection was reset",
  EHOSTUNREACH: "there is no route to the host",
  ENETUNREACH: "there is no route to the network",
  ETIMEDOUT: "the connection did not open in time",
  UND_ERR_CONNECT_TIMEOUT: "the connection did not open in time",
  ENOTFOUND: "the name of the host is unknown",
  EAI_AGAIN: "the name of the host cannot be looked up now",
  ENOENT: "there is no such socket",
  EACCES: "the socket is for other users",
  CERT_HAS_EXPIRED: "the certificate has expired",
  CERT_NOT_YET_VALID: "the certificate is not valid yet",
  ERR_TLS_CERT_ALTNAME_INVALID: "the certificate is for another name; --upstream-server-name says which",
  DEPTH_ZERO_SELF_SIGNED_CERT: "the certificate is signed by itself; --upstream-ca FILE trusts it",
  SELF_SIGNED_CERT_IN_CHAIN: "the authority of the certificate is unknown; --upstream-ca FILE trusts it",
  UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    "the authority of the certificate is unknown; --upstream-ca FILE trusts it",
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    "the authority of the certificate is unknown; --upstream-ca FILE trusts it",
  ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED: "the server asks for a certificate; --upstream-cert names one",
  ERR_SSL_WRONG_VERSION_NUMBER: "the server does not speak TLS",
  ERR_SSL_PACKET_LENGTH_TOO_LONG: "the server does not speak TLS",
  EPROTO: "the server does not speak TLS",
  UND_ERR_SOCKET: "the connection was closed",
};

/** Failures of the connection, of which people need to know the address. */
const OF_CONNECTION: ReadonlySet<unknown> = new Set(["unreached", "reset", "silent", "broken"]);

/** How errors name a server of which their authors do not know the address. */
const SERVER = "the upstream catalog";

function factsOf(error: LanceError, address: string): FailureFacts {
  const message = error.message.replaceAll(/\s*\n\s*/g, " ");
  const { kind, fault } = error;
  const isOfServer = OF_CONNECTION.has(fault) || (kind === "DeadlineExceeded" && message.includes(SERVER));
  if (!isOfServer) return { kind, message: message.replace(SERVER, "the server") };
  const named = message.includes(SERVER) ? message.replace(SERVER, address) : `${address}: ${message}`;
  const cause = causeOf(error);
  if (cause === undefined) return { kind, message: named, address };
  return { kind, message: `${named}: ${CAUSES[cause]} (${cause})`, address, cause };
}

const CODE = new RegExp(`\\b(?:${Object.keys(CAUSES).join("|")})\\b`);

/** Finds a known code among the causes of an error, in the text where libraries keep it only there. */
function causeOf(error: unknown): string | undefined {
  for (let each: unknown = error; each instanceof Error; each = each.cause) {
    const { code, details } = each as { code?: unknown; details?: unknown };
    const inner = each instanceof AggregateError ? each.errors : [];
    const texts = [code, each.message, details, ...inner.map(String)].filter(
      (text) => typeof text === "string",
    );
    const found = CODE.exec(texts.join(" "))?.[0];
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Returns a failure as a line for people, without secrets. */
export function failureLine(thrown: unknown): string {
  return redactText(thrown instanceof Error ? thrown.message : String(thrown));
}

/** Returns a failure as a line of JSON, without secrets. */
export function failureJson(thrown: unknown): string {
  const kind = thrown instanceof UsageError ? "Usage" : "Failure";
  const facts = thrown instanceof CallFailure ? thrown.facts : { kind, message: failureLine(thrown) };
  return JSON.stringify({ error: { ...facts, message: redactText(facts.message) } });
}
