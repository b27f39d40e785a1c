import { Code, ConnectError } from "@connectrpc/connect";
import type { Call } from "../namespace/call.ts";
import { type ErrorName, LanceError, toLanceError } from "../namespace/errors.ts";
import { type ErrorDetails, lanceDetails } from "./grpc/status.ts";

/** The error that a client is told of for a thrown value; what clients must not see is logged. */
export function toConnectError(thrown: unknown, call: Call, detailsOf?: ErrorDetails): ConnectError {
  const error = toLanceError(thrown);
  if (error !== thrown) {
    call.log.error({ err: thrown, requestId: call.requestId }, "Connect call failed with an unknown error");
  }
  return connectErrorOf(error, call.requestId, detailsOf);
}

/** An error of the table in the library's words. */
export function connectErrorOf(
  error: LanceError,
  requestId: string,
  detailsOf: ErrorDetails = lanceDetails,
): ConnectError {
  const details = [...detailsOf(error, requestId)];
  return new ConnectError(error.message, error.entry.grpcCode, error.headers, details, error);
}

const ROWS: Readonly<Partial<Record<Code, ErrorName>>> = {
  [Code.Canceled]: "Cancelled",
  [Code.InvalidArgument]: "InvalidInput",
  [Code.DeadlineExceeded]: "DeadlineExceeded",
  [Code.ResourceExhausted]: "PayloadTooLarge",
  [Code.Unimplemented]: "Unsupported",
  [Code.Aborted]: "Cancelled",
};

/** The messages of a request; what the library finds wrong with them, and a body that breaks off, is a LanceError. */
export async function* withLanceErrors<T>(messages: AsyncIterable<T>): AsyncIterable<T> {
  try {
    yield* messages;
  } catch (thrown) {
    if (!(thrown instanceof ConnectError)) {
      throw new LanceError("Cancelled", "the request broke off", { cause: thrown });
    }
    if (thrown.cause instanceof LanceError) throw thrown.cause;
    throw new LanceError(ROWS[thrown.code] ?? "Internal", thrown.rawMessage, { cause: thrown });
  }
}

/** What a call says whose deadline has passed. */
export const DEADLINE_PASSED = "the deadline of the call has passed";

/** The reason that a call's signal carries: the deadline, or a client that is gone. */
export function abortErrorOf(reason: unknown): LanceError {
  if (reason instanceof ConnectError && reason.code === Code.DeadlineExceeded) {
    return new LanceError("DeadlineExceeded", DEADLINE_PASSED);
  }
  return new LanceError("Cancelled", "the client cancelled the call");
}
