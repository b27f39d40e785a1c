import type { FastifyError } from "fastify";
import { LanceError, problemOf, toLanceError } from "../../namespace/errors.ts";

/**
 * Returns the JSON of an error. It has both shapes that clients know: the public API's `error` and `code`, and the
 * `type`, `title`, `status`, `detail` and `instance` of RFC 9457. `kind` is the name of the row of the error table.
 *
 * @param status HTTP status of the answer.
 * @param path path of the request's resource.
 */
export function errorText(error: LanceError, status: number, path: string): string {
  const { code, kind, message, detail = "" } = error;
  const { type, title } = problemOf(kind, status);
  return JSON.stringify({ error: message, code, kind, type, title, status, detail, instance: path });
}

/**
 * Returns the row of the error table for a thrown value: the faults that Fastify finds in a request are the client's.
 */
export function knownError(thrown: unknown): LanceError {
  const { code = "", statusCode = 0 } = (thrown ?? {}) as Partial<FastifyError>;
  if (!/^FST_ERR_/.test(code) || statusCode < 400 || statusCode >= 500) return toLanceError(thrown);
  const name = statusCode === 415 ? "UnsupportedMediaType" : "InvalidInput";
  const message =
    code === "FST_ERR_BAD_URL" ? "the path must be percent-encoded UTF-8" : (thrown as Error).message;
  return new LanceError(name, message, { cause: thrown });
}
