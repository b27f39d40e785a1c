import type { LanceError } from "../../namespace/errors.ts";

/**
 * The JSON of an error. It has both shapes that clients know: the public API's `error` and `code`, and the
 * `type`, `title` and `status` of RFC 9457.
 *
 * @param status the HTTP status of the answer.
 * @param instance the path of the request.
 */
export function errorText({ entry, message, detail }: LanceError, status: number, instance: string): string {
  const { code, type, title } = entry;
  return JSON.stringify({ error: message, code, type, title, status, detail, instance });
}
