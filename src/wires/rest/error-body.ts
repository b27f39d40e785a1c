import type { FastifyError } from "fastify";
import { LanceError, toLanceError } from "../../namespace/errors.ts";

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

/** The row of the error table for a thrown value: what Fastify finds wrong with a request is the client's fault. */
export function knownError(thrown: unknown): LanceError {
  const { code = "", statusCode = 0 } = (thrown ?? {}) as Partial<FastifyError>;
  if (!/^FST_ERR_/.test(code) || statusCode < 400 || statusCode >= 500) return toLanceError(thrown);
  const name = statusCode === 415 ? "UnsupportedMediaType" : "InvalidInput";
  const message =
    code === "FST_ERR_BAD_URL" ? "the path must be percent-encoded UTF-8" : (thrown as Error).message;
  return new LanceError(name, message, { cause: thrown });
}
