import type { Call } from "../../namespace/call/call.ts";
import { type Action, allows, isReadAction } from "../../namespace/call/principal.ts";
import { LanceError } from "../../namespace/errors.ts";
import { type Identifier, joinIdentifier } from "../../namespace/identifier.ts";
import { actionOf } from "../../namespace/operations/method-facts.ts";
import { type Interceptor, onlyFor } from "../call/interceptor.ts";

/** Refuses the calls that the caller's role does not allow, before anything looks whether their object exists. */
export const authorize: Interceptor = (call, request, next) => {
  const { principal, method, id } = call;
  const action = actionOf(method);
  if (principal === undefined || !allows(principal, action)) throw refusal(call, method.name, action, id);
  call.may = (other) => allows(principal, other);
  return next(call, request);
};

/** Returns the error of a call that may not do something to an object; it says nothing else. */
export function refusal(
  { database }: Pick<Call, "database">,
  operation: string,
  action: Action,
  id: Identifier,
): LanceError {
  const object = [...(database === undefined ? [] : [database]), ...id];
  const place = object.length === 0 ? "the root" : joinIdentifier(object);
  return new LanceError("PermissionDenied", `${operation} (${action}) on ${place} is not allowed`);
}

/** Refuses every call that changes something, on every backend. */
export const readOnly = onlyFor(
  ({ action }) => !isReadAction(action),
  ({ method }) => {
    throw new LanceError("PermissionDenied", `the gateway is read-only: ${method.name} writes`);
  },
);
