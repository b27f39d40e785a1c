import type { Message } from "@bufbuild/protobuf";
import type { Call } from "../../namespace/call.ts";
import { LanceError } from "../../namespace/errors.ts";
import type { CredentialHeaders } from "./identity.ts";

/** The headers of clients that are passed on by default: what ties the parts of a trace together. */
export const DEFAULT_PASSED_HEADERS: readonly string[] = [
  "traceparent",
  "tracestate",
  "baggage",
  "idempotency-key",
  "prefer",
  "x-lance-*",
  "x-lancedb-*",
];

/** The headers of answers that clients get by default. */
export const DEFAULT_RETURNED_HEADERS: readonly string[] = [
  "etag",
  "preference-applied",
  "deprecation",
  "sunset",
  "server-timing",
  "traceresponse",
  "x-lance-*",
  "x-lancedb-*",
];

/** Headers that are a connection's, a message's or the gateway's own; no list and no context passes them on. */
const OWN =
  /^(?::.*|accept|accept-encoding|connection|content-.*|cookie|expect|forwarded|grpc-.*|host|keep-alive|proxy-.*|set-cookie|te|trailer|transfer-encoding|upgrade|x-forwarded-.*|x-request-id|x-request-timeout-ms)$/;

/** Headers that say who calls; they go as the identity has them and in no other way. */
const CREDENTIALS = /^(?:authorization|x-api-key)$/;

/** Headers that are another in every call, and that no answer depends on. */
const A_CALLS_OWN: ReadonlySet<string> = new Set(["traceparent", "tracestate", "idempotency-key"]);

const NAME = /^[!#$%&'*+.^_`|~0-9a-z-]+$/;
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;
const CONTEXT_PREFIX = "header.";

/** What {@link createHeaderPolicy} needs. */
export interface HeaderPolicyOptions {
  /** Headers of every request; they come before those of clients. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Default: {@link DEFAULT_PASSED_HEADERS}. */
  readonly passHeaders?: readonly string[] | undefined;
  /** Default: {@link DEFAULT_RETURNED_HEADERS}. */
  readonly returnHeaders?: readonly string[] | undefined;
}

/** Which headers go to an upstream, and which come back. */
export interface HeaderPolicy {
  /**
   * The headers of a request, names and values in turn: the fixed ones, the request's id, those of the client that
   * the list names, and the `header.*` entries of the request's context. Those entries and the identity are taken
   * out of the request, so that it carries no credentials of its own.
   *
   * @throws LanceError InvalidInput for a context entry that is no header's value.
   */
  sent(call: Call, request: Message): string[];
  /**
   * Those of them that an answer may depend on, whoever calls: all but the fixed ones and what is a single call's.
   * The request stays as it is.
   */
  varying(call: Call, request: Message): string[];
  /** Adds credentials to the headers of a request, unless fixed ones take their place. */
  addCredentials(pairs: string[], credentials: CredentialHeaders): void;
  /** Hands the headers of an answer to the client. */
  returned(headers: Readonly<Record<string, string | string[] | undefined>>, call: Call): void;
  /** Takes what the list does not name out of the context of an answer. */
  filterContext(response: Message): void;
}

interface Contextual extends Message {
  identity?: unknown;
  context?: Record<string, string>;
}

/**
 * Creates the policy of one upstream.
 *
 * @throws Error for a fixed header that is none.
 */
export function createHeaderPolicy(options: HeaderPolicyOptions): HeaderPolicy {
  const passes = createNameList(options.passHeaders ?? DEFAULT_PASSED_HEADERS);
  const returns = createNameList(options.returnHeaders ?? DEFAULT_RETURNED_HEADERS);
  const fixed = new Map(
    Object.entries(options.headers ?? {}).map(([name, value]) => [name.toLowerCase(), value]),
  );
  for (const [name, value] of fixed) {
    if (!NAME.test(name) || !VALUE.test(value)) throw new Error(`${JSON.stringify(name)} is no header`);
  }
  const fixedPairs = [...fixed].flat();

  function addClients(pairs: string[], call: Call, named: ReadonlySet<string> | undefined): string[] {
    for (const name in call.headers) {
      if (!passes(name) && !named?.has(name)) continue;
      if (OWN.test(name) || CREDENTIALS.test(name) || fixed.has(name)) continue;
      const value = call.headers[name] as string;
      if (!VALUE.test(value))
        throw new LanceError("InvalidInput", `header ${name} has a value that no header has`);
      pairs.push(name, value);
    }
    return pairs;
  }

  return {
    sent: (call, request) =>
      addClients([...fixedPairs, "x-request-id", call.requestId], call, takeContext(request)),
    varying(call, request) {
      const pairs = addClients([], call, namedByContext(request));
      return pairs.filter((_, at) => !A_CALLS_OWN.has(pairs[at & ~1] as string));
    },
    addCredentials(pairs, credentials) {
      for (const name in credentials) {
        if (!fixed.has(name)) pairs.push(name, credentials[name] as string);
      }
    },
    returned(headers, call) {
      for (const name in headers) {
        if (!returns(name) || OWN.test(name)) continue;
        const value = headers[name];
        if (value !== undefined) call.responseHeaders[name] = String(value);
      }
    },
    filterContext(response) {
      const { context } = response as Contextual;
      for (const key in context) {
        if (!key.startsWith(CONTEXT_PREFIX)) continue;
        const name = key.slice(CONTEXT_PREFIX.length).toLowerCase();
        if (!returns(name) || OWN.test(name)) delete context[key];
      }
    },
  };
}

/** The names of the headers in the context of a request. */
function namedByContext({ context = {} }: Contextual): Set<string> {
  const keys = Object.keys(context).filter((key) => key.startsWith(CONTEXT_PREFIX));
  return new Set(keys.map((key) => key.slice(CONTEXT_PREFIX.length).toLowerCase()));
}

/** Takes identity and header entries out of a request; the names of the headers, which are the call's by now. */
function takeContext(request: Message): Set<string> | undefined {
  const contextual: Contextual = request;
  if (contextual.identity !== undefined) delete contextual.identity;
  let named: Set<string> | undefined;
  let rest: Record<string, string> | undefined;
  for (const key in contextual.context) {
    if (!key.startsWith(CONTEXT_PREFIX)) continue;
    named ??= new Set();
    rest ??= { ...contextual.context };
    named.add(key.slice(CONTEXT_PREFIX.length).toLowerCase());
    delete rest[key];
  }
  if (rest !== undefined) contextual.context = rest;
  return named;
}

/** Whether a lower-case name is in a list, whose entries may end with a `*`. */
function createNameList(entries: readonly string[]): (name: string) => boolean {
  const names = new Set<string>();
  const beginnings: string[] = [];
  for (const entry of entries.map((text) => text.toLowerCase())) {
    if (entry.endsWith("*")) beginnings.push(entry.slice(0, -1));
    else names.add(entry);
  }
  return (name) => names.has(name) || beginnings.some((beginning) => name.startsWith(beginning));
}
