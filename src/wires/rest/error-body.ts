import type { LanceError } from "../../namespace/errors.ts";

/**
 * The JSON of an error. It has both shapes that clients know: the public API's `error` and `code`, and the
 * `type`, `title` and `status` of RFC 9457.
 *
 * @param status the HTTP status of the answer.
 * @param path the request's; it is the `instance` of an error that has none of its own.
 */
export function errorText(error: LanceError, status: number, path: string): string {
  const { entry, message, detail, instance = path } = error;
  const { code, type, title } = entry;
  return JSON.stringify({ error: message, code, type, title, status, detail, instance });
}
