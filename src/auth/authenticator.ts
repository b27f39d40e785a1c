import type { Call, Credentials } from "../namespace/call/call.ts";
import type { Principal } from "../namespace/call/principal.ts";
import { LanceError } from "../namespace/errors.ts";
import { backoffMs, monotonicNow } from "../runtime/clocks.ts";
import { type CellShape, type KeyedCells, openCells } from "../runtime/threads/keyed-cells.ts";

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

/** Options of {@link createFailureDelay}. */
interface FailureDelayOptions {
  /** Delay after the first failure, in milliseconds; it doubles with each further one. Default: 10. */
  readonly firstMs?: number;
  /** Longest delay, in milliseconds. Default: 2 s. */
  readonly longestMs?: number;
  /** Time without a failure after which an address is forgotten, in milliseconds. Default: 60 s. */
  readonly memoryMs?: number;
  /** Failures of addresses, of the shape {@link FAILURES_SHAPE}. Default: those of this thread alone. */
  readonly cells?: KeyedCells | undefined;
}

/** Slows the answers to addresses down from which wrong credentials come. */
export interface FailureDelay {
  /** Counts a failure of an address, and returns how long its answer has to wait, in milliseconds. */
  failed(address: string | undefined): number;
}

/** Shape of the numbers of failures: the time of the last one, which is the rank, and how many there were. */
export const FAILURES_SHAPE: CellShape = { numbers: 1 };

/** Creates a {@link FailureDelay}. Credentials that are right never wait, wherever they come from. */
export function createFailureDelay(options: FailureDelayOptions = {}): FailureDelay {
  const { firstMs = 10, longestMs = 2_000, memoryMs = 60_000, cells = openCells(FAILURES_SHAPE) } = options;
  return {
    failed(address = "") {
      const now = monotonicNow();
      const before = cells.change(address, (numbers, at) => {
        const count = now - (numbers[at] as number) < memoryMs ? (numbers[at + 1] as number) : 0;
        numbers[at] = now;
        numbers[at + 1] = count + 1;
        return count;
      });
      return backoffMs(before ?? 0, firstMs, longestMs);
    },
  };
}
