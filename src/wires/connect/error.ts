import { Code, ConnectError } from "@connectrpc/connect";
import type { Call } from "../../namespace/call/call.ts";
import { type ErrorName, LanceError, toLanceError } from "../../namespace/errors.ts";
import { deadlinePassed } from "../deadline.ts";
import { type ErrorDetails, lanceDetails } from "../grpc/status.ts";

/** Returns the error that a client sees for a thrown value, and logs what clients must not see. */
export function toConnectError(thrown: unknown, call: Call, detailsOf?: ErrorDetails): ConnectError {
  const error = toLanceError(thrown);
  if (error !== thrown) {
    call.log.error({ err: thrown, requestId: call.requestId }, "Connect call failed with an unknown error");
  }
  return connectErrorOf(error, call.requestId, detailsOf);
}

/** Converts an error of the table to the library's form. */
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

/**
 * Yields the messages of a request; faults that the library finds in them, and a body that breaks off, become
 * LanceErrors.
 */
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

/** Returns the reason of a call's signal: the deadline, or a client that has disconnected. */
export function abortErrorOf(reason: unknown): LanceError {
  if (reason instanceof ConnectError && reason.code === Code.DeadlineExceeded) {
    return deadlinePassed();
  }
  return new LanceError("Cancelled", "the client cancelled the call");
}
