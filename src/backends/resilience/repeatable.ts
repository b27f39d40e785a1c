import type { DescMethod } from "@bufbuild/protobuf";
import { isRead } from "../../namespace/reads.ts";
import type { Repeatable } from "./resilience.ts";

/**
 * What the repetition of a method's call would do.
 *
 * @param headers names and values in turn, as the upstream gets them
 */
export function repeatableOf(method: DescMethod, headers: readonly string[]): Repeatable {
  if (isRead(method)) return method.methodKind === "unary" ? "parallel" : "serial";
  // A body that passes can be read once; anything else can be sent again, if its upstream takes it so.
  if (method.methodKind === "client_streaming") return "unsent";
  return headers.some((name, index) => index % 2 === 0 && name === "idempotency-key") ? "serial" : "unsent";
}
