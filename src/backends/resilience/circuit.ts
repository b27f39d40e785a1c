import {
  type CircuitBreakerPolicy,
  CircuitState,
  ConsecutiveBreaker,
  circuitBreaker,
  ExponentialBackoff,
  handleWhen,
  type IBackoffFactory,
  noJitterGenerator,
} from "cockatiel";
import { healthOf } from "./faults.ts";

/** The longest time that a circuit stays open between two probes, in milliseconds. */
const MAX_OPEN_MS = 60_000;

/** What {@link Circuit} needs. */
export interface CircuitOptions {
  /** After how many failures in a row it opens; 0 for never. */
  readonly failures: number;
  /** How long it stays open at first, in milliseconds. */
  readonly openMs: number;
  readonly onOpen: () => void;
  readonly onClose: () => void;
}

/**
 * Keeps calls away from an address that fails: it opens after some failures in a row, lets one call through when its
 * time is over, and closes when that succeeds.
 */
export class Circuit {
  readonly #policy: CircuitBreakerPolicy;
  #openUntil = 0;

  constructor({ failures, openMs, onOpen, onClose }: CircuitOptions) {
    const breaker = new ConsecutiveBreaker(failures === 0 ? Number.POSITIVE_INFINITY : failures);
    const policy: CircuitBreakerPolicy = circuitBreaker(
      handleWhen((error) => {
        const health = healthOf(error);
        // An error is an answer, too; the policy itself takes only successes for signs of life.
        if (health === "working") breaker.success();
        // A probe that was broken off has shown nothing.
        return health === "failing" || (health === "unknown" && policy.state === CircuitState.HalfOpen);
      }),
      {
        breaker,
        halfOpenAfter: this.#noting(
          new ExponentialBackoff({
            initialDelay: openMs,
            maxDelay: Math.max(openMs, MAX_OPEN_MS),
            generator: noJitterGenerator,
          }),
        ),
      },
    );
    policy.onBreak(onOpen);
    policy.onReset(onClose);
    this.#policy = policy;
  }

  /** Whether calls go through as usual. */
  get isClosed(): boolean {
    return this.#policy.state === CircuitState.Closed;
  }

  /** Whether the next call would be the probe. */
  get isProbeDue(): boolean {
    return this.#policy.state === CircuitState.Open && Date.now() > this.#openUntil;
  }

  /** How long no call will go through, in milliseconds. */
  get closedForMs(): number {
    return this.isClosed ? 0 : Math.max(0, this.#openUntil - Date.now());
  }

  /** @throws what the call throws, or cockatiel's BrokenCircuitError if it is not let through */
  run<R>(attempt: () => Promise<R>): Promise<R> {
    return this.#policy.execute(attempt);
  }

  /** A backoff whose last step is known here; the policy keeps it to itself. */
  #noting(backoff: IBackoffFactory<unknown>): IBackoffFactory<unknown> {
    return {
      next: (context) => {
        const step = backoff.next(context);
        this.#openUntil = Date.now() + step.duration;
        return Object.assign(this.#noting(step), { duration: step.duration });
      },
    };
  }
}
