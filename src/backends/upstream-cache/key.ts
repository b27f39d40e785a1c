import { createHash, randomBytes } from "node:crypto";
import { type DescMethod, type Message, toBinary } from "@bufbuild/protobuf";
import type { Call } from "../../namespace/call/call.ts";

/** Returns the key of an answer, from the principal and the request. */
export type KeyOf = (
  method: DescMethod,
  request: Message,
  call: Call,
  principal: readonly string[],
) => string;

interface Asking extends Message {
  context?: Record<string, string>;
  identity?: unknown;
}

/**
 * Creates the keys of a cache. They are hashes with a secret of this process, so that the memory of the cache reveals
 * no credential, and allows no guess to be verified.
 */
export function createKeyOf(): KeyOf {
  const secret = randomBytes(32);
  return (method, request, call, principal) =>
    createHash("sha256")
      .update(secret)
      .update(JSON.stringify([method.localName, call.id, principal]))
      .update(toBinary(method.input, essential(request)))
      .digest("base64");
}

/** Returns a request without the parts that the call has resolved: its object, headers and credentials. */
function essential(request: Asking): Message {
  const context = Object.entries(request.context ?? {})
    .filter(([key]) => !key.startsWith("header."))
    .sort(([a], [b]) => (a < b ? -1 : 1));
  const { identity: _, ...rest } = request;
  return { ...rest, id: [], identifier: "", context: Object.fromEntries(context) } as Message;
}
