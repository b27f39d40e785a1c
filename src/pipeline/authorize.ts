import { actionOf } from "../namespace/actions.ts";
import { LanceError } from "../namespace/errors.ts";
import { joinIdentifier } from "../namespace/identifier.ts";
import { allows, isReadAction } from "../namespace/principal.ts";
import type { Interceptor } from "./interceptor.ts";

/** Refuses the calls that the caller's role does not allow, before anything looks whether their object exists. */
export const authorize: Interceptor = (call, request, next) => {
  const { principal, method } = call;
  const action = actionOf(method);
  if (principal === undefined || !allows(principal, action)) {
    const object = [...(call.database === undefined ? [] : [call.database]), ...call.id];
    const place = object.length === 0 ? "the root" : joinIdentifier(object);
    throw new LanceError("PermissionDenied", `${method.name} (${action}) on ${place} is not allowed`);
  }
  return next(call, request);
};

/** Refuses every call that changes something, on every backend. */
export const readOnly: Interceptor = (call, request, next) => {
  if (isReadAction(actionOf(call.method))) return next(call, request);
  throw new LanceError("PermissionDenied", `the gateway serves for reading only: ${call.method.name} writes`);
};
