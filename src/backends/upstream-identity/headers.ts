import type { Message } from "@bufbuild/protobuf";
import type { Call } from "../../namespace/call/call.ts";
import { DATABASE_HEADERS, endsHere, FRESHNESS_HEADERS } from "../../namespace/call/headers.ts";
import { LanceError } from "../../namespace/errors.ts";
import { currentTraceParent } from "../../runtime/tracing.ts";
import type { CredentialHeaders } from "./identity.ts";
import { type Contextual, eachNested } from "./nested-context.ts";

/** Headers of clients that are forwarded by default: those that connect the parts of a trace. */
export const DEFAULT_PASSED_HEADERS: readonly string[] = [
  "traceparent",
  "tracestate",
  "baggage",
  "idempotency-key",
  "prefer",
  "x-lance-*",
  "x-lancedb-*",
];

/** Headers of answers that clients get by default. */
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

/** Headers that identify the caller; only the identity sets them. */
const CREDENTIALS = /^(?:authorization|x-api-key|x-amz-(?:content-sha256|date|security-token))$/;

/**
 * Headers by which an upstream may choose a database. Where the gateway asks who calls, it decides about the objects of the
 * database that it has chosen itself, and the operator may have chosen the upstream's.
 */
const DATABASE: ReadonlySet<string> = new Set(DATABASE_HEADERS.flatMap((name) => [name, `${name}-prefix`]));

/**
 * Further headers by which servers choose a place: the location of a new table, in earlier versions of the REST API, and the catalog. Where
 * the gateway asks who calls, it has decided about another one, or none.
 */
const PLACES: ReadonlySet<string> = new Set(["x-lance-table-location", "x-lance-root-catalog"]);

const IDEMPOTENCY_KEY = "idempotency-key";

/** Headers that belong to a single call: answers to others do not depend on them. */
const A_CALLS_OWN: ReadonlySet<string> = new Set([
  "traceparent",
  "tracestate",
  IDEMPOTENCY_KEY,
  ...FRESHNESS_HEADERS,
]);

const NAME = /^[!#$%&'*+.^_`|~0-9a-z-]+$/;
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;
const CONTEXT_PREFIX = "header.";

/**
 * Longest headers of an answer's context together, in characters: clients and proxies break answers with more off, and that of a change
 * would look like a failure.
 */
const MAX_RETURNED_LENGTH = 8 * 1024;

/** Options of {@link createHeaderPolicy}. */
export interface HeaderPolicyOptions {
  /** Headers of every request; they override those of clients. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Default: {@link DEFAULT_PASSED_HEADERS}. */
  readonly passHeaders?: readonly string[] | undefined;
  /** Default: {@link DEFAULT_RETURNED_HEADERS}. */
  readonly returnHeaders?: readonly string[] | undefined;
  /** Returns the idempotency key that an upstream gets for that of a caller. Default: the key itself. */
  readonly keyOfCaller?: (key: string, call: Call) => string;
}

/** Decides which headers go to an upstream, and which are returned. */
export interface HeaderPolicy {
  /**
   * Returns the headers of a request, names and values in turn: the fixed ones, the request's id and those of the
   * client that the list names, both headers and `header.*` entries of the request's context. It removes these
   * entries and every identity from the request, so that the request carries no credentials of its own.
   *
   * @throws LanceError InvalidInput for a context entry that is not a header's value.
   */
  sent(call: Call, request: Message): string[];
  /**
   * Returns those of the headers on which an answer may depend: all except the fixed ones and those that belong to a
   * single call. It does not change the request.
   */
  varying(call: Call): string[];
  /** Whether the upstream gets the name of a database that a client's header has, and chooses the database by it. */
  passesDatabase(call: Call): boolean;
  /**
   * Adds credentials to the headers of a request, unless fixed ones override them.
   *
   * @throws LanceError InvalidInput for a credential that is not a header's value.
   */
  addCredentials(pairs: string[], credentials: CredentialHeaders): void;
  /** Passes the headers of an answer to the client; those of the message or the connection reach its context alone. */
  returned(headers: Readonly<Record<string, string | string[] | undefined>>, call: Call): void;
  /** Removes the headers that the list does not name, no header can have, or are too long from the context of an answer. */
  filterContext(response: Message, call: Call): void;
}

/**
 * Creates the policy of an upstream.
 *
 * @throws Error for a malformed fixed header.
 */
export function createHeaderPolicy(options: HeaderPolicyOptions): HeaderPolicy {
  const passes = createNameList(options.passHeaders ?? DEFAULT_PASSED_HEADERS);
  const returns = createNameList(options.returnHeaders ?? DEFAULT_RETURNED_HEADERS);
  const { keyOfCaller = (key: string) => key } = options;
  const fixed = new Map(
    Object.entries(options.headers ?? {}).map(([name, value]) => [name.toLowerCase(), value]),
  );
  for (const [name, value] of fixed) {
    if (!NAME.test(name) || !VALUE.test(value)) throw new Error(`${JSON.stringify(name)} is no header`);
  }
  const fixedPairs = [...fixed].flat();
  const listed = new Set(options.passHeaders?.map((name) => name.toLowerCase()));
  const isNamed = new Set(options.returnHeaders?.map((name) => name.toLowerCase()));
  const choosesDatabase = [...fixed.keys()].some((name) => DATABASE.has(name));

  function isOperators(name: string, { principal }: Call): boolean {
    if (fixed.has(name)) return true;
    const isUnlisted = principal !== undefined && !listed.has(name);
    return PLACES.has(name) ? isUnlisted : DATABASE.has(name) && (choosesDatabase || isUnlisted);
  }

  /** Whether a client gets a header of an answer. */
  function isReturned(name: string, { principal }: Call): boolean {
    if (COOKIES.test(name)) return isNamed.has(name);
    return returns(name) && (principal === undefined || !ABOUT_CALLER.test(name));
  }

  /** Whether a client gets an entry of an answer's context, which may become a header of the gateway's answer. */
  function isEntryReturned(name: string, call: Call): boolean {
    return isReturned(name, call) && !isOwnAnswers(name);
  }

  function filter({ context }: Contextual, call: Call): void {
    let left = MAX_RETURNED_LENGTH;
    for (const key in context) {
      if (!key.startsWith(CONTEXT_PREFIX)) continue;
      const value = context[key] as string;
      const length = key.length + value.length;
      const isGiven =
        length <= left &&
        VALUE.test(value) &&
        isEntryReturned(key.slice(CONTEXT_PREFIX.length).toLowerCase(), call);
      if (isGiven) left -= length;
      else delete context[key];
    }
  }

  function addClients(pairs: string[], call: Call): string[] {
    const isOwn = endsHere(call.headers);
    for (const name in call.headers) {
      if (!passes(name) || isOwn(name) || CREDENTIALS.test(name) || isOperators(name, call)) continue;
      const value = call.headers[name] as string;
      if (!VALUE.test(value)) throw new LanceError("InvalidInput", `invalid value for header ${name}`);
      pairs.push(name, name === IDEMPOTENCY_KEY ? keyOfCaller(value, call) : value);
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
    passesDatabase(call) {
      const isOwn = endsHere(call.headers);
      return DATABASE_HEADERS.some(
        (name) =>
          call.headers[name] !== undefined && passes(name) && !isOwn(name) && !isOperators(name, call),
      );
    },
    addCredentials(pairs, credentials) {
      for (const name in credentials) {
        const value = credentials[name] as string;
        // Values from a message have passed no parser of headers.
        if (!VALUE.test(value)) {
          throw new LanceError("InvalidInput", `the credential for ${name} is not a valid header value`);
        }
        if (!fixed.has(name)) pairs.push(name, value);
      }
    },
    returned(headers, call) {
      const own: Record<string, string> = {};
      for (const name in headers) {
        const value = headers[name];
        if (value === undefined || !isReturned(name, call)) continue;
        const text = typeof value === "string" ? value : value.join(", ");
        if (!isOwnAnswers(name)) call.responseHeaders[name] = text;
        else own[name] = text;
      }
      call.messageHeaders = own;
    },
    filterContext(response, call) {
      filter(response, call);
      eachNested(call.method.output, response, (nested) => filter(nested, call));
    },
  };
}

/** Headers in which a gateway tells what its caller may do. To an upstream, the caller may be this gateway. */
const ABOUT_CALLER = /^x-lance-gateway-/;

/** Headers with which a proxy or a server would recognise the gateway; they are returned if the list names them. */
const COOKIES = /^set-cookie2?$/;

/** Decides which headers of answers belong to their connection or message. */
const isOwnAnswers = endsHere({});

/** Removes identity and header entries from a request; the call has the headers by now. */
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
  return (name) => {
    if (names.has(name)) return true;
    // Each header of every request and answer passes here, and a function for each beginning would cost.
    for (const beginning of beginnings) if (name.startsWith(beginning)) return true;
    return false;
  };
}

const TRACEPARENT = "traceparent";

/** Returns a copy of headers, names and values in turn, whose `traceparent` continues the current span, if there is any. */
export function inTrace(pairs: readonly string[]): string[] {
  const own = currentTraceParent();
  if (own === undefined) return [...pairs];
  const at = pairs.findIndex((text, index) => index % 2 === 0 && text === TRACEPARENT);
  return at === -1 ? [...pairs, TRACEPARENT, own] : pairs.with(at + 1, own);
}
