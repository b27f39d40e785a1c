import { setTimeout as sleep } from "node:timers/promises";
import type { Authenticator } from "../../auth/authenticator.ts";
import type { Call } from "../../namespace/call/call.ts";
import { addressKey } from "../../namespace/call/caller-key.ts";
import type { Principal } from "../../namespace/call/principal.ts";
import { isRefused, type Reception } from "../../namespace/call/reception.ts";
import { isLanceError, LanceError } from "../../namespace/errors.ts";
import { whileWaiting } from "../../runtime/time/while-waiting.ts";
import type { Interceptor } from "./interceptor.ts";

/** Maximum number of refused calls whose answers wait. */
const MAX_WAITING = 1_000;

/** How long an early proof counts, in milliseconds: a revoked key counts as long until its file is read again. */
const PROOF_MS = 1_000;

/**
 * Finds out who calls, or refuses the call. Refusals of wrong credentials come later and later for the same address.
 *
 * Credentials that the gateway asks for end here: no backend sees them.
 */
export function identify(authenticator: Authenticator): Interceptor {
  let waiting = 0;

  async function refuse(call: Call, thrown: unknown): Promise<never> {
    // A credential that cannot be checked now may be right.
    if (!isLanceError(thrown, "Unauthenticated")) throw thrown;
    if (waiting >= MAX_WAITING) {
      const headers = { "retry-after": "1" };
      const limit = "wrong_credentials";
      throw new LanceError("Throttling", "too many calls with wrong credentials", { headers, limit });
    }
    waiting += 1;
    try {
      await sleep(authenticator.failed(addressKey(call)), undefined, { signal: call.signal });
    } finally {
      waiting -= 1;
    }
    throw thrown;
  }

  function name(call: Call, principal: Principal): void {
    call.principal = principal;
    call.brought = call.identity;
    const { ends } = authenticator;
    const { apiKey, authToken } = call.identity;
    call.identity = {
      apiKey: ends.has("apiKey") ? undefined : apiKey,
      authToken: ends.has("authToken") ? undefined : authToken,
    };
    if (ends.has("authToken")) delete call.headers["authorization"];
  }

  async function check(call: Call, checking: Promise<Principal>): Promise<void> {
    try {
      name(call, await whileWaiting(checking, call.signal));
    } catch (thrown) {
      await refuse(call, thrown);
    }
  }

  /** Returns the caller that was proved before the message was read, unless that took long. */
  function provedEarly(reception: Reception | undefined): Principal | undefined {
    if (reception === undefined || isRefused(reception) || reception.by !== authenticator) return undefined;
    return performance.now() - reception.at < PROOF_MS ? reception.principal : undefined;
  }

  return (call, request, next) => {
    const { reception } = call;
    if (isRefused(reception))
      return reception.isGuess ? refuse(call, reception.refusal) : Promise.reject(reception.refusal);
    let found: Principal | Promise<Principal> | undefined;
    try {
      found = provedEarly(reception) ?? authenticator.authenticate(call);
    } catch (thrown) {
      return refuse(call, thrown);
    }
    // A client that brings nothing guesses nothing.
    if (found === undefined) return Promise.reject(authenticator.nothingBrought());
    if (found instanceof Promise) return check(call, found).then(() => next(call, request));
    name(call, found);
    return next(call, request);
  };
}
