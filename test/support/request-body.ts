import type { IncomingMessage } from "node:http";
import { text } from "node:stream/consumers";

/**
 * Returns the body of a request as text; undefined when the client breaks the request off, after which it reads no
 * answer.
 */
export function bodyOf(request: IncomingMessage): Promise<string | undefined> {
  return text(request).catch(() => undefined);
}
