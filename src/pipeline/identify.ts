import { setTimeout as sleep } from "node:timers/promises";
import type { Authenticator } from "../auth/authenticator.ts";
import type { Call } from "../namespace/call.ts";
import { LanceError } from "../namespace/errors.ts";
import type { Interceptor } from "./interceptor.ts";

/** Maximum number of refused calls whose answers wait. */
const MAX_WAITING = 1_000;

/**
 * Finds out who calls, or refuses the call. Refusals of wrong credentials come later and later for the same address.
 *
 * A key that the gateway has accepted ends here: no backend sees it.
 */
export function identify(authenticator: Authenticator): Interceptor {
  let waiting = 0;

  async function refuse(call: Call, thrown: unknown): Promise<never> {
    // A client that sends nothing guesses nothing.
    if (call.identity.apiKey === undefined) throw thrown;
    if (waiting >= MAX_WAITING) {
      const headers = { "retry-after": "1" };
      throw new LanceError("Throttling", "too many calls bring wrong credentials", { headers });
    }
    waiting += 1;
    try {
      await sleep(authenticator.failed(call.peer), undefined, { signal: call.signal });
    } finally {
      waiting -= 1;
    }
    throw thrown;
  }

  return (call, request, next) => {
    try {
      call.principal = authenticator.authenticate(call.identity);
    } catch (thrown) {
      return refuse(call, thrown);
    }
    call.identity = { apiKey: undefined, authToken: call.identity.authToken };
    return next(call, request);
  };
}
