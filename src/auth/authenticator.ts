import type { Call, Credentials } from "../namespace/call/call.ts";
import type { Principal } from "../namespace/call/principal.ts";
import { LanceError } from "../namespace/errors.ts";
import { createFailureDelay, type FailureDelay } from "./failure-delay.ts";

/** The parts of a call that prove who its caller is. */
export type Evidence = Pick<Call, "identity" | "certificate">;

/** A way in which callers prove who they are: a kind of credential, and how it is checked. */
export interface Way {
  /** What a caller has to bring, for refusals of calls that bring nothing. */
  readonly needs: string;
  /** Challenge for `www-authenticate`. Default: HTTP has none for this kind of credential. */
  readonly challenge?: string;
  /** Whether the message of a call may bring the credential, beside its headers. Default: false. */
  readonly isInMessage?: boolean;
  /** Credentials that the gateway asks for by this way, and that no upstream sees. Default: none. */
  readonly ends?: readonly (keyof Credentials)[];
  /**
   * Returns the caller that a call's credential proves; undefined if the call has none of this kind.
   *
   * @throws LanceError Unauthenticated for a wrong credential, ServiceUnavailable for one that cannot be checked now.
   */
  prove(evidence: Evidence): Principal | Promise<Principal> | undefined;
  close(): void;
}

/** Proves who a caller is, by any of several ways. */
export interface Authenticator extends Pick<FailureDelay, "failed"> {
  /** Credentials that no upstream sees. */
  readonly ends: ReadonlySet<keyof Credentials>;
  /**
   * Returns the caller of a call; undefined if it has no credential. The first way whose credential the call has decides, also if
   * that credential is wrong and another one would be right.
   *
   * @throws LanceError Unauthenticated, ServiceUnavailable
   */
  authenticate(evidence: Evidence): Principal | Promise<Principal> | undefined;
  /**
   * Returns the caller of a call whose message is not read yet, as {@link authenticate} will then; `open` if that depends on the message.
   *
   * @throws LanceError Unauthenticated, ServiceUnavailable
   */
  authenticateEarly(evidence: Evidence): Principal | Promise<Principal> | "open" | undefined;
  /** Returns the refusal of a call without a credential. */
  nothingBrought(): LanceError;
  close(): void;
}

/**
 * Creates an authenticator.
 *
 * @param ways in the order in which they are tried.
 * @param delay Default: that of {@link createFailureDelay}.
 */
export function createAuthenticator(ways: readonly Way[], delay = createFailureDelay()): Authenticator {
  const needs = ways.map((way) => way.needs).join(", or ");
  const challenges = ways.flatMap(({ challenge }) => challenge ?? []);
  const headers: Record<string, string> = {};
  if (challenges.length > 0) headers["www-authenticate"] = challenges.join(", ");
  return {
    ends: new Set(ways.flatMap(({ ends = [] }) => ends)),
    authenticate(evidence) {
      for (const way of ways) {
        const found = way.prove(evidence);
        if (found !== undefined) return found;
      }
      return undefined;
    },
    authenticateEarly(evidence) {
      for (const way of ways) {
        const found = way.prove(evidence);
        if (found !== undefined) return found;
        if (way.isInMessage) return "open";
      }
      return undefined;
    },
    nothingBrought: () => new LanceError("Unauthenticated", `the gateway needs ${needs}`, { headers }),
    failed: delay.failed,
    close() {
      for (const way of ways) way.close();
    },
  };
}
