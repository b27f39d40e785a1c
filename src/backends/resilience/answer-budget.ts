import { LanceError } from "../../namespace/errors.ts";
import { type ByteBudget, createByteBudget } from "../../namespace/memory/byte-budget.ts";
import type { SharedQuantity } from "../../runtime/threads/sharing.ts";

/** Bytes of an answer that are not counted, so that small answers arrive while large ones are refused. */
export const FREE_ANSWER_BYTES = 64 * 1024;

/** Default memory for answers of upstreams, in bytes: 512 MiB. */
const DEFAULT_ANSWER_BYTES = 512 * 1024 ** 2;

/** Text of the refusal, by which the library for gRPC passes it on. */
export const ANSWERS_CROWDED = "upstream response memory limit exceeded by the responses in flight";

/**
 * Creates the budget of the answers of upstreams that are collected before they are read: they count from their arrival until they are
 * read. Beyond it they are refused instead of kept waiting, because half-read answers would wait for each other.
 *
 * @param maxBytes Default: 512 MiB.
 * @param shared bytes that the workers of the process hold. Default: there is a single worker.
 */
export function createAnswerBudget(
  maxBytes: number = DEFAULT_ANSWER_BYTES,
  shared?: SharedQuantity,
): ByteBudget {
  return createByteBudget(maxBytes, shared, answersCrowded);
}

/** The upstream works and has answered; a change whose answer is refused has an unknown outcome. */
function answersCrowded(): LanceError {
  return new LanceError("ServiceUnavailable", ANSWERS_CROWDED, {
    headers: { "retry-after": "1" },
    limit: "memory",
    fault: "oversized",
  });
}
