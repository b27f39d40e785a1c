import { backoffMs } from "./clocks.ts";

/**
 * Health of an address as the end of an attempt reveals it: it fails, it works, or nothing, because the gateway ended the
 * attempt.
 */
export type Health = "failing" | "working" | "unknown";

/** Options of {@link Circuit}. */
export interface CircuitOptions {
  /** Number of consecutive failures after which it opens; 0 for never. */
  readonly failures: number;
  /** How long it stays open at first, in milliseconds. */
  readonly openMs: number;
  /** How long it stays open at most between two probes, in milliseconds; the time doubles until then. Default: `openMs`. */
  readonly longestOpenMs?: number | undefined;
  readonly onOpen?: () => void;
  readonly onClose?: () => void;
}

/** A call that a circuit has admitted. */
export interface Turn {
  /** Whether this call alone probes the address. */
  readonly isProbe: boolean;
  /** Reports what the call revealed about the address; only the first report counts. */
  tell(health: Health): void;
}

/**
 * Keeps calls away from an address that fails. It opens after consecutive failures, becomes half-open and admits a
 * single call when its time is over, and closes when that call succeeds. A probe without a result passes its role to
 * the next call.
 */
export class Circuit {
  readonly #options: CircuitOptions;
  #failuresInRow = 0;
  /** Number of times that it has opened since it was closed. */
  #openings = 0;
  #openUntil = 0;
  /** Counts changes between open and closed; calls from before the last change no longer count. */
  #era = 0;
  #isProbed = false;

  constructor(options: CircuitOptions) {
    this.#options = options;
  }

  /** Whether calls go through as usual. */
  get isClosed(): boolean {
    return this.#openings === 0;
  }

  /** Whether the next call would be the probe. */
  get isProbeDue(): boolean {
    return !this.isClosed && !this.#isProbed && performance.now() >= this.#openUntil;
  }

  /** How long it admits no call, in milliseconds. */
  get closedForMs(): number {
    return this.isClosed ? 0 : Math.max(0, this.#openUntil - performance.now());
  }

  /** Admits a call; returns undefined if the call must not be made. */
  enter(): Turn | undefined {
    const isProbe = !this.isClosed;
    if (isProbe && !this.isProbeDue) return undefined;
    this.#isProbed = isProbe;
    const era = this.#era;
    let isTold = false;
    return {
      isProbe,
      tell: (health) => {
        if (isTold || era !== this.#era) return;
        isTold = true;
        if (isProbe) this.#isProbed = false;
        if (health === "failing") this.#fail(isProbe);
        else if (health === "working") this.#succeed();
      },
    };
  }

  #fail(wasProbe: boolean): void {
    const { failures, openMs, longestOpenMs = openMs, onOpen } = this.#options;
    this.#failuresInRow += 1;
    if (!wasProbe && (failures === 0 || this.#failuresInRow < failures)) return;
    this.#openUntil = performance.now() + backoffMs(this.#openings, openMs, Math.max(openMs, longestOpenMs));
    this.#openings += 1;
    this.#era += 1;
    onOpen?.();
  }

  #succeed(): void {
    this.#failuresInRow = 0;
    if (this.isClosed) return;
    this.#openings = 0;
    this.#era += 1;
    this.#options.onClose?.();
  }
}
