import { isMessage, type Message } from "@bufbuild/protobuf";
import { BatchCommitTablesRequestSchema } from "../../gen/lance/namespace/v1/transaction_pb.ts";
import type { Call, Credentials } from "../../namespace/call/call.ts";
import { endsHere } from "../../namespace/call/headers.ts";
import { LanceError } from "../../namespace/errors.ts";
import {
  agreedIdentifier,
  checkDelimiter,
  checkIdentifier,
  DEFAULT_DELIMITER,
  type Identifier,
  parseIdentifier,
  sameIdentifier,
} from "../../namespace/identifier.ts";
import { pathFieldsOf } from "../../namespace/operations/method-facts.ts";
import { checkPathValue } from "../../namespace/operations/template.ts";
import type { Interceptor, OperationRequest } from "./interceptor.ts";

/** Fields that requests share, as far as a request has them. */
interface Addressed extends Message {
  id?: string[];
  identifier?: string;
  delimiter?: string;
  identity?: { apiKey?: string; authToken?: string };
  context?: Record<string, string>;
}

/** Resolves the object and the credentials of each call, as {@link resolveRequest} does. */
export const resolve: Interceptor = (call, request, next) => {
  resolveRequest(request.message, call);
  return next(call, request);
};

/**
 * Resolves the object and the caller of a call, before any decision depends on them.
 *
 * Afterwards `call.id` and the request's `id` are the parsed identifier, `call.headers` also has the `header.*`
 * entries of the request's context, and `call.identity` has the credentials. Values from the wire override the
 * request's own fields, as the public specification says.
 *
 * @throws LanceError InvalidInput, if the route and the request name different objects, or a field that paths carry
 *   has a segment of dots.
 */
export function resolveRequest(request: Message, call: Call): void {
  for (const { localName, name } of pathFieldsOf(call.method)) {
    const value = (request as Message & Record<string, unknown>)[localName];
    if (typeof value === "string") checkPathValue(value, name);
  }
  const addressed: Addressed = request;
  if (addressed.delimiter !== undefined) checkDelimiter(addressed.delimiter);
  if (addressed.identifier !== undefined) {
    const names = addressed.id ?? [];
    call.id = resolveIdentifier(addressed.identifier, names, addressed.delimiter);
    // The text may be another object to an upstream, which gets the request.
    if (call.id === names) addressed.identifier = "";
    addressed.id = [...call.id];
  }
  call.context = addressed.context;
  if (addressed.context !== undefined) addContextHeaders(addressed.context, call);
  call.identity = credentialsIn(call.headers, addressed.identity);
}

function resolveIdentifier(
  text: string,
  names: readonly string[],
  delimiter = DEFAULT_DELIMITER,
): Identifier {
  if (text === "") {
    checkIdentifier(names);
    return names;
  }
  const parsed = parseIdentifier(text, delimiter);
  if (names.length === 0 || sameIdentifier(parsed, names)) return parsed;
  // Lance's Rust client writes a space in a path as "+"; the body's list then has the name.
  if (sameIdentifier(parseIdentifier(text.replaceAll("+", " "), delimiter), names)) return names;
  throw new LanceError(
    "InvalidInput",
    `the request body names ${JSON.stringify(names)}, the route names ${JSON.stringify(parsed)}`,
  );
}

const CONTEXT_HEADER = /^header\.([!#$%&'*+.^_`|~0-9A-Za-z-]+)$/;

/** Returns the header of a context entry; undefined for an entry of another kind. */
function headerName(key: string): string | undefined {
  return CONTEXT_HEADER.exec(key)?.[1]?.toLowerCase();
}

/** Longest names and values of a context's headers together, in characters: as many as HTTP/1.1 takes of headers here. */
const MAX_HEADERS_LENGTH = 16 * 1024;

/**
 * Adds the entries that name a header which the client could have sent, and no others. Servers cut connections off whose headers are
 * too long, and an upstream's connection has the calls of others, too.
 */
function addContextHeaders(context: Record<string, string>, call: Call): void {
  const isOwn = endsHere(call.headers);
  let length = 0;
  for (const key in context) {
    const name = headerName(key);
    if (name === undefined || isOwn(name)) continue;
    const value = context[key] as string;
    length += name.length + value.length;
    if (length > MAX_HEADERS_LENGTH) {
      const text = `the headers in context may have ${MAX_HEADERS_LENGTH} characters together`;
      throw new LanceError("InvalidInput", text);
    }
    call.headers[name] ??= value;
  }
}

/** The token begins where the spaces end, so that a text of spaces is read once. */
const BEARER = /^bearer +(\S.*)$/i;

/** Returns the credentials in headers, which override those of a message. @param identity Default: none. */
export function credentialsIn(
  headers: Readonly<Record<string, string>>,
  identity?: Addressed["identity"],
): Credentials {
  const authorization = headers["authorization"];
  const bearer = authorization === undefined ? undefined : BEARER.exec(authorization)?.[1];
  return {
    apiKey: headers["x-api-key"] ?? identity?.apiKey,
    authToken: bearer ?? identity?.authToken,
  };
}

/**
 * Copies the context of a response to the headers of its answer, and the headers to the context. The headers of the
 * upstream's message are entries only, because the answer has its own.
 */
export function shareContext(response: Message, call: Call): void {
  const { context } = response as Addressed;
  if (context === undefined) return;
  for (const key in context) {
    const name = headerName(key);
    if (name !== undefined) call.responseHeaders[name] ??= context[key] as string;
  }
  const { responseHeaders, messageHeaders } = call;
  for (const name in responseHeaders) context[`header.${name}`] = responseHeaders[name] as string;
  for (const name in messageHeaders) context[`header.${name}`] = messageHeaders[name] as string;
}

/** Makes the lists of a commit's entries name their tables, so that nothing has to parse a text later. */
export function nameEntries({ message }: OperationRequest): void {
  if (!isMessage(message, BatchCommitTablesRequestSchema)) return;
  const { operations, delimiter: common } = message;
  for (const { operation: entry } of operations) {
    if (entry.value === undefined) continue;
    const { id, identifier, delimiter = common } = entry.value;
    entry.value.id = [...agreedIdentifier(id, identifier, delimiter)];
    entry.value.identifier = "";
  }
}
