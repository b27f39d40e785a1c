import type { DescMethod } from "@bufbuild/protobuf";
import type { Authenticator } from "../../auth/authenticator.ts";
import { isRefused, type Reception } from "../../namespace/call/reception.ts";
import { factsOf } from "../../namespace/operations/operations.ts";
import type { Service } from "../../namespace/service.ts";
import type { Interceptor } from "./interceptor.ts";
import { credentialsIn } from "./resolve.ts";

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
