import { getSystemErrorMessage } from "node:util";
import { SERVER } from "../../client/errors.ts";
import type { LanceError } from "../../client/exports.ts";
import { UsageError } from "../../config/option-spec.ts";
import { IN_LOG } from "../../namespace/errors.ts";
import { redactText } from "../../observability/log/redact.ts";
import { escapeInvisible } from "../../runtime/text.ts";
import { forTerminal } from "./terminal-text.ts";

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

  /** @param isServed whether a server has answered, whose log has more. Default: true */
  constructor(error: LanceError, address: string, isServed = true) {
    const facts = factsOf(isServed ? error.message : fullMessage(error), error, address);
    super(`${facts.message} (${facts.kind})`, { cause: error });
    this.facts = facts;
  }
}

const TRUST = "--upstream-ca FILE trusts it";

/**
 * Meanings of the codes of the system and of TLS, and the words of libraries that keep no code. The first row that
 * matches counts.
 */
const CAUSES: readonly (readonly [code: string, meaning: string, words?: RegExp])[] = [
  ["ECONNREFUSED", "nothing listens there"],
  ["ENOTFOUND", "the name of the host is unknown", /Name resolution failed/],
  ["EAI_AGAIN", "the name of the host cannot be looked up now"],
  ["EHOSTUNREACH", "there is no route to the host"],
  ["ENETUNREACH", "there is no route to the network"],
  ["UND_ERR_CONNECT_TIMEOUT", "the connection did not open in time", /Deadline passed/],
  ["ETIMEDOUT", "the connection did not open in time"],
  ["ENOENT", "there is no such socket"],
  ["EACCES", "the socket is for other users"],
  ["CERT_HAS_EXPIRED", "the certificate has expired", /certificate has expired/],
  ["CERT_NOT_YET_VALID", "the certificate is not valid yet", /certificate is not yet valid/],
  [
    "ERR_TLS_CERT_ALTNAME_INVALID",
    "the certificate is for another name; --upstream-server-name says which",
    /does not match certificate/,
  ],
  [
    "DEPTH_ZERO_SELF_SIGNED_CERT",
    `the certificate is signed by itself; ${TRUST}`,
    /self-signed certificate(?! in)/,
  ],
  [
    "SELF_SIGNED_CERT_IN_CHAIN",
    `the authority of the certificate is unknown; ${TRUST}`,
    /self-signed certificate in/,
  ],
  [
    "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
    `the authority of the certificate is unknown; ${TRUST}`,
    /unable to verify the first certificate/,
  ],
  [
    "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
    `the authority of the certificate is unknown; ${TRUST}`,
    /unable to get local issuer certificate/,
  ],
  [
    "ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED",
    "the server asks for a certificate; --upstream-cert names one",
    /certificate required/,
  ],
  [
    "ERR_SSL_WRONG_VERSION_NUMBER",
    "the server does not speak TLS",
    /wrong version number|packet length too long/,
  ],
  ["ECONNRESET", "the connection was reset"],
  ["UND_ERR_SOCKET", "the connection was closed"],
];

/** Failures of the connection, of which people need to know the address. */
const OF_CONNECTION: ReadonlySet<unknown> = new Set(["unreached", "reset", "silent", "broken"]);

/** Returns the message of an error with the cause that a server would only log. */
function fullMessage({ message, cause }: LanceError): string {
  if (!(cause instanceof Error)) return message;
  const [first = ""] = cause.message.split(PLACE_IN_ENGINE, 1);
  return message.replace(IN_LOG, () => first);
}

/** Where an error of the engine was made in its sources; its causes follow. */
const PLACE_IN_ENGINE = /, \/\S+\.rs:\d/;

function factsOf(text: string, error: LanceError, address: string): FailureFacts {
  const message = text.replaceAll(/\s*\n\s*/g, " ");
  const { kind, fault } = error;
  const isOfServer = OF_CONNECTION.has(fault) || (kind === "DeadlineExceeded" && message.includes(SERVER));
  if (!isOfServer) return { kind, message: message.replace(SERVER, "the server") };
  const named = message.includes(SERVER) ? message.replace(SERVER, address) : `${address}: ${message}`;
  const cause = causeOf(error);
  if (cause === undefined) return { kind, message: named, address };
  const [code, meaning] = cause;
  return { kind, message: `${named}: ${meaning} (${code})`, address, cause: code };
}

/** Finds the first known cause in the chain of an error's causes. */
function causeOf(error: unknown): (typeof CAUSES)[number] | undefined {
  const texts: string[] = [];
  for (let each: unknown = error; each instanceof Error; each = each.cause) {
    const { code } = each as { code?: unknown };
    const inner = each instanceof AggregateError ? each.errors : [];
    texts.push(String(code), each.message, ...inner.map(String));
  }
  const all = texts.join(" ");
  return CAUSES.find(([code, , words]) => all.includes(code) || words?.test(all));
}

/** Returns a failure as a line for people, without secrets and without commands for their terminal. */
export function failureLine(thrown: unknown): string {
  return forTerminal(messageOf(thrown));
}

function messageOf(thrown: unknown): string {
  return redactText(thrown instanceof Error ? textOf(thrown) : String(thrown));
}

/** Returns the message of an error; of one of the system, which begins with a code, a sentence about its file. */
function textOf(error: NodeJS.ErrnoException): string {
  const { code, errno, path, message } = error;
  if (errno === undefined || path === undefined) return message;
  return `${path} cannot be used: ${getSystemErrorMessage(errno)} (${code})`;
}

/** Returns a failure as a line of JSON, without secrets. */
export function failureJson(thrown: unknown): string {
  const kind = thrown instanceof UsageError ? "Usage" : "Failure";
  const facts = thrown instanceof CallFailure ? thrown.facts : { kind, message: messageOf(thrown) };
  return escapeInvisible(JSON.stringify({ error: { ...facts, message: redactText(facts.message) } }));
}
