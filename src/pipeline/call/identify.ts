import { setTimeout as sleep } from "node:timers/promises";
import type { DescMethod } from "@bufbuild/protobuf";
import type { Authenticator } from "../../auth/authenticator.ts";
import type { Call } from "../../namespace/call/call.ts";
import { addressKey } from "../../namespace/call/caller-key.ts";
import type { Principal } from "../../namespace/call/principal.ts";
import { isRefused, type Reception } from "../../namespace/call/reception.ts";
import { isLanceError, LanceError } from "../../namespace/errors.ts";
import { factsOf } from "../../namespace/operations/operations.ts";
import type { Service } from "../../namespace/service.ts";
import { whileWaiting } from "../../runtime/promises.ts";
import type { Interceptor } from "./interceptor.ts";
import { credentialsIn } from "./resolve.ts";

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

/** Longest early check, in milliseconds. The pipeline makes those that take longer, and ends them when the call ends. */
const EARLY_MS = 100;

/**
 * Creates the function that checks a caller before the message of its call is read. It leaves the decision to {@link identify} where the
 * message may bring the credential that counts.
 */
export function createReceive(authenticator: Authenticator): NonNullable<Service["receive"]> {
  const proved = (principal: Exclude<Reception, { refusal: unknown }>["principal"]): Reception => ({
    ...{ principal, by: authenticator, at: performance.now() },
  });
  const refused = (refusal: unknown): Reception => ({ refusal, isGuess: true });

  return ({ method, headers, certificate, hasHeadersOnly = false }) => {
    if (factsOf(method.localName)?.checksKey) return undefined;
    const evidence = { identity: credentialsIn(headers), certificate };
    try {
      const found =
        !hasHeadersOnly && bringsCredentials(method)
          ? authenticator.authenticateEarly(evidence)
          : authenticator.authenticate(evidence);
      if (found === "open") return undefined;
      if (found === undefined) return { refusal: authenticator.nothingBrought(), isGuess: false };
      return found instanceof Promise ? unlessLate(found.then(proved, refused)) : proved(found);
    } catch (thrown) {
      return refused(thrown);
    }
  };
}

/** Resolves to undefined if a check takes long. */
function unlessLate<T>(checking: Promise<T>): Promise<T | undefined> {
  const { promise, resolve } = Promise.withResolvers<T | undefined>();
  const timer = setTimeout(resolve, EARLY_MS, undefined);
  void checking.then(resolve).finally(() => clearTimeout(timer));
  return promise;
}

/** Fields of messages in which a caller may prove who it is: directly, and as headers. */
const FIELDS: ReadonlySet<string> = new Set(["identity", "context"]);

const bringing = new Map<DescMethod, boolean>();

/** Whether the message of a method can bring credentials. */
function bringsCredentials(method: DescMethod): boolean {
  const known = bringing.get(method);
  if (known !== undefined) return known;
  const found = method.input.fields.some(({ name }) => FIELDS.has(name));
  bringing.set(method, found);
  return found;
}

/** Refuses calls whose messages were not read, where nobody is asked any more who calls. */
export const refuseUnread: Interceptor = (call, request, next) => {
  if (isRefused(call.reception)) throw call.reception.refusal;
  return next(call, request);
};
