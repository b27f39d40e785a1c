import { Code, ConnectError } from "@connectrpc/connect";
import { ErrorResponseSchema } from "../gen/lance/namespace/v1/common_pb.ts";
import type { Call } from "../namespace/call.ts";
import { ERROR_TABLE, type ErrorName, errorEntryOfCode, LanceError } from "../namespace/errors.ts";

/** The rows for the codes of servers, and of proxies before them, that say no more than that. */
const ROWS: Readonly<Partial<Record<Code, ErrorName>>> = {
  [Code.InvalidArgument]: "InvalidInput",
  [Code.OutOfRange]: "InvalidInput",
  [Code.DeadlineExceeded]: "DeadlineExceeded",
  [Code.PermissionDenied]: "PermissionDenied",
  [Code.ResourceExhausted]: "Throttling",
  [Code.FailedPrecondition]: "InvalidTableState",
  [Code.Aborted]: "ConcurrentModification",
  [Code.Unimplemented]: "Unsupported",
  [Code.Unavailable]: "ServiceUnavailable",
  [Code.Canceled]: "ServiceUnavailable",
  [Code.Unauthenticated]: "Unauthenticated",
};

const ADVICE = ["retry-after", "allow"];

/** The error that a failed call over Connect is to the program; a call that it ended itself comes first. */
export function errorOfConnect(thrown: unknown, { signal }: Call): LanceError {
  if (signal.aborted && signal.reason instanceof LanceError) return signal.reason;
  if (!(thrown instanceof ConnectError)) {
    return thrown instanceof LanceError
      ? thrown
      : new LanceError("Internal", "the answer of the server cannot be read", { cause: thrown });
  }
  // What fetch throws when there is no connection, or none any more.
  if (thrown.cause instanceof TypeError) {
    return new LanceError("ServiceUnavailable", "the server cannot be reached", { cause: thrown });
  }
  if (thrown.cause instanceof LanceError) return thrown.cause;
  const options = { cause: thrown, headers: adviceOf(thrown.metadata) };
  const [told] = thrown.findDetails(ErrorResponseSchema);
  if (told === undefined) return new LanceError(ROWS[thrown.code] ?? "Internal", thrown.rawMessage, options);
  const { type, code, error, detail, instance } = told;
  const named = ERROR_TABLE.find((entry) => entry.type === type && entry.code === code);
  const { name } = named ?? errorEntryOfCode(code);
  return new LanceError(name as ErrorName, error ?? thrown.rawMessage, {
    ...options,
    ...(detail && { detail }),
    ...(instance && { instance }),
  });
}

function adviceOf(metadata: Headers): Record<string, string> {
  return Object.fromEntries(
    ADVICE.flatMap((name) => {
      const value = metadata.get(name);
      return value === null ? [] : [[name, value] as const];
    }),
  );
}
