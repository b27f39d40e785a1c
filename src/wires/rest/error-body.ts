import type { LanceError } from "../../namespace/errors.ts";

/**
 * The JSON of an error. It has both shapes that clients know: the public API's `error` and `code`, and the
 * `type`, `title` and `status` of RFC 9457.
 *
 * @param instance the path of the request.
 */
export function errorText({ entry, message, detail }: LanceError, instance: string): string {
  const { code, type, title, httpStatus } = entry;
  return JSON.stringify({ error: message, code, type, title, status: httpStatus, detail, instance });
}
