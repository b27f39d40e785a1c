import { ConnectError } from "@connectrpc/connect";
import { lostAnswer, repeatableOf } from "../../backends/resilience/resilience.ts";
import { ErrorResponseSchema } from "../../gen/lance/namespace/v1/common_pb.ts";
import type { Call } from "../../namespace/call/call.ts";
import { LanceError } from "../../namespace/errors.ts";
import { errorOfStatus } from "../../namespace/status-error.ts";
import { SERVER } from "../connections/server-name.ts";

/** Returns the error for a failed call over Connect; if the call ended itself, the reason of the abort. */
export function errorOfConnect(
  thrown: unknown,
  { signal, method, headers }: Pick<Call, "signal" | "method" | "headers">,
): unknown {
  if (signal.aborted && signal.reason instanceof LanceError) return signal.reason;
  if (!(thrown instanceof ConnectError)) {
    return thrown instanceof LanceError
      ? thrown
      : new LanceError("Internal", `cannot read the response of ${SERVER}`, { cause: thrown });
  }
  // The error that fetch throws when the connection fails or is lost. Whether the request was sent is unknown.
  if (thrown.cause instanceof TypeError) {
    const error = new LanceError("ServiceUnavailable", `${SERVER} cannot be reached`, { cause: thrown });
    const isLost = repeatableOf(method, Object.entries(headers).flat()) === "unsent";
    return isLost ? lostAnswer(error) : error;
  }
  if (thrown.cause instanceof LanceError) return thrown.cause;
  const [detail] = thrown.findDetails(ErrorResponseSchema);
  const { code, rawMessage: text, metadata } = thrown;
  return errorOfStatus({ code, text, detail, header: (name) => metadata.get(name), cause: thrown }, method);
}
