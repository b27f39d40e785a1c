import type { Message } from "@bufbuild/protobuf";
import type { Call } from "../../namespace/call.ts";
import { LanceError } from "../../namespace/errors.ts";
import { endsHere } from "../../namespace/header-names.ts";
import type { CredentialHeaders } from "./identity.ts";
import { type Contextual, eachNested } from "./nested-context.ts";

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

/** Headers that say who calls; they go as the identity has them and in no other way. */
const CREDENTIALS = /^(?:authorization|x-api-key|x-amz-(?:content-sha256|date|security-token))$/;

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
   * The headers of a request, names and values in turn: the fixed ones, the request's id and those of the client that
   * the list names, whether they came as headers or as `header.*` entries of the request's context. Those entries and
   * every identity are taken out of the request, so that it carries no credentials of its own.
   *
   * @throws LanceError InvalidInput for a context entry that is no header's value.
   */
  sent(call: Call, request: Message): string[];
  /**
   * Those of them that an answer may depend on, whoever calls: all but the fixed ones and what is a single call's.
   * The request stays as it is.
   */
  varying(call: Call): string[];
  /**
   * Adds credentials to the headers of a request, unless fixed ones take their place.
   *
   * @throws LanceError InvalidInput for a credential that is no header's value.
   */
  addCredentials(pairs: string[], credentials: CredentialHeaders): void;
  /** Hands the headers of an answer to the client. */
  returned(headers: Readonly<Record<string, string | string[] | undefined>>, call: Call): void;
  /** Takes what the list does not name out of the context of an answer. */
  filterContext(response: Message, call: Call): void;
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

  function filter({ context }: Contextual): void {
    for (const key in context) {
      if (!key.startsWith(CONTEXT_PREFIX)) continue;
      const name = key.slice(CONTEXT_PREFIX.length).toLowerCase();
      if (!returns(name) || isOwnAnswers(name)) delete context[key];
    }
  }

  function addClients(pairs: string[], call: Call): string[] {
    const isOwn = endsHere(call.headers);
    for (const name in call.headers) {
      if (!passes(name) || isOwn(name) || CREDENTIALS.test(name) || fixed.has(name)) continue;
      const value = call.headers[name] as string;
      if (!VALUE.test(value))
        throw new LanceError("InvalidInput", `header ${name} has a value that no header has`);
      pairs.push(name, value);
    }
    return pairs;
  }

  return {
    sent(call, request) {
      takeHeaders(request);
      eachNested(call.method.input, request, takeHeaders);
      return addClients([...fixedPairs, "x-request-id", call.requestId], call);
    },
    varying(call) {
      const pairs = addClients([], call);
      return pairs.filter((_, at) => !A_CALLS_OWN.has(pairs[at & ~1] as string));
    },
    addCredentials(pairs, credentials) {
      for (const name in credentials) {
        const value = credentials[name] as string;
        // Those of a message have passed no parser of headers.
        if (!VALUE.test(value)) {
          throw new LanceError("InvalidInput", `the credential for ${name} has a value that no header has`);
        }
        if (!fixed.has(name)) pairs.push(name, value);
      }
    },
    returned(headers, call) {
      for (const name in headers) {
        if (!returns(name) || isOwnAnswers(name)) continue;
        const value = headers[name];
        if (value !== undefined) call.responseHeaders[name] = String(value);
      }
    },
    filterContext(response, { method }) {
      filter(response);
      eachNested(method.output, response, filter);
    },
  };
}

/** Which headers of answers end here. */
const isOwnAnswers = endsHere({});

/** Takes identity and header entries out of a request; the headers are the call's by now. */
function takeHeaders(request: Contextual): void {
  if (request.identity !== undefined) delete request.identity;
  const { context } = request;
  if (context === undefined || !Object.keys(context).some(isHeaderEntry)) return;
  request.context = Object.fromEntries(Object.entries(context).filter(([key]) => !isHeaderEntry(key)));
}

function isHeaderEntry(key: string): boolean {
  return key.startsWith(CONTEXT_PREFIX);
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
