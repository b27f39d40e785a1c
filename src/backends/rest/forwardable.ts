import { type DescMethod, getOption } from "@bufbuild/protobuf";
import { http } from "../../gen/google/api/annotations_pb.ts";

/** The fields that every request has. */
const SHARED = new Set(["id", "identifier", "delimiter", "identity", "context"]);

/**
 * Whether a request tells all that the method's route needs: it has fields of its own, and the method is not a
 * collection of several operations, by routes between which a message cannot tell or by a last name that is free.
 */
export function isForwardable(method: DescMethod): boolean {
  const rule = getOption(method, http);
  const path = rule.pattern.value ?? "";
  const single =
    !path.endsWith("}") && rule.additionalBindings.every(({ pattern }) => pattern.value === path);
  return single && method.input.fields.some(({ name }) => !SHARED.has(name));
}
