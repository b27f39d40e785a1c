import { Code, ConnectError } from "@connectrpc/connect";
import { ErrorResponseSchema } from "../gen/lance/namespace/v1/common_pb.ts";
import type { Call } from "../namespace/call.ts";
import { type ErrorName, LanceError, toLanceError } from "../namespace/errors.ts";
import { errorDetail } from "./grpc/status.ts";

/** The error that a client is told of for a thrown value; what clients must not see is logged. */
export function toConnectError(thrown: unknown, call: Call): ConnectError {
  const error = toLanceError(thrown);
  if (error !== thrown) {
    call.log.error({ err: thrown, requestId: call.requestId }, "Connect call failed with an unknown error");
  }
  const detail = { desc: ErrorResponseSchema, value: errorDetail(error, call.requestId) };
  return new ConnectError(error.message, error.entry.grpcCode, error.headers, [detail]);
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
    throw new LanceError(ROWS[thrown.code] ?? "Internal", thrown.rawMessage, { cause: thrown });
  }
}

/** The reason that a call's signal carries: the deadline, or a client that is gone. */
export function abortErrorOf(reason: unknown): LanceError {
  if (reason instanceof ConnectError && reason.code === Code.DeadlineExceeded) {
    return new LanceError("DeadlineExceeded", "the deadline of the call has passed");
  }
  return new LanceError("Cancelled", "the client cancelled the call");
}
