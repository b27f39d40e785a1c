import type { Call } from "../../namespace/call/call.ts";
import { type Action, isReadAction, ROLES } from "../../namespace/call/roles.ts";
import type { Interceptor } from "../call/interceptor.ts";

/** Header of a request that asks what its caller may do to the object of the call; its value is {@link ASKS}. */
const ASKING_HEADER = "x-lance-gateway-tell";
const ASKS = "permissions";

/** Header of the answer: the kinds of operations that the caller may do to the object, separated by commas. */
const PERMISSIONS_HEADER = "x-lance-gateway-permissions";

/** Header of the answer: who the caller is, as policies name it, encoded as a part of an address. */
const PRINCIPAL_HEADER = "x-lance-gateway-principal";

/**
 * Tells a caller that asks for it what it may do to the object of its call, and who it is, so that a user
 * interface can leave out the rest. Roles or policies decide; a kind is listed if every operation of it is allowed.
 *
 * @param isReadOnly whether the gateway refuses everything that writes.
 */
export function tellPermissions(isReadOnly: boolean): Interceptor {
  const possible = ROLES.owner.filter((action) => !isReadOnly || isReadAction(action));

  async function tell(call: Call): Promise<void> {
    const allowed: Action[] = [];
    for (const action of possible) {
      if (call.may === undefined || (await call.may(action))) allowed.push(action);
    }
    call.responseHeaders[PERMISSIONS_HEADER] = allowed.join(", ");
    const { principal } = call;
    if (principal !== undefined)
      call.responseHeaders[PRINCIPAL_HEADER] = encodeURIComponent(`${principal.by}:${principal.name}`);
    // The header is also an entry of the message.
    call.takes = undefined;
  }

  return (call, request, next) =>
    call.headers[ASKING_HEADER] === ASKS ? tell(call).then(() => next(call, request)) : next(call, request);
}
