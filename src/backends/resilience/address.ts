import type { Logger } from "pino";
import { LanceError } from "../../namespace/errors.ts";
import type { NoteDecision } from "../../namespace/figures.ts";
import { Circuit, type Health, type Turn } from "../../runtime/circuit.ts";
import { backoffMs } from "../../runtime/clocks.ts";
import { type Endpoint, healthOf, type Notes, refusal } from "./resilience.ts";

/** Longest ejection of an address, in milliseconds. */
const MAX_EJECTION_MS = 300_000;

/** Context that the addresses of an upstream share. */
export interface AddressOptions<T> {
  readonly circuitFailures: number;
  readonly circuitOpenMs: number;
  readonly ejectMs: number;
  /**
   * How long an address may leave calls without an answer before that counts as a failure, in milliseconds; 0 for any
   * time.
   */
  readonly silenceMs: number;
  /** Ejects an address that has failed, if it is an outlier; returns whether it did. */
  readonly ejectOutlier: (address: Address<T>) => boolean;
  readonly log: Logger;
  readonly noteDecision: NoteDecision;
}

/** Longest time that a circuit stays open between two probes, in milliseconds. */
const MAX_OPEN_MS = 60_000;

/** An address of an upstream, and its recent health. */
export class Address<T> {
  readonly target: T;
  readonly name: string;
  readonly circuit: Circuit;
  readonly errors = new ErrorShare();
  /** Number of calls in flight to it. */
  pending = 0;
  readonly #options: AddressOptions<T>;
  /** Whether its circuit has opened and no call has recorded that yet. */
  #hasOpened = false;
  /** When an attempt last ended with an answer. */
  #heardAt = 0;
  #ejectedUntil = 0;
  #readmittedAt = 0;
  #ejections = 0;

  constructor({ target, name }: Endpoint<T>, options: AddressOptions<T>) {
    const { log } = options;
    this.target = target;
    this.name = name;
    this.#options = options;
    this.circuit = new Circuit({
      failures: options.circuitFailures,
      openMs: options.circuitOpenMs,
      longestOpenMs: MAX_OPEN_MS,
      onOpen: () => {
        this.#hasOpened = true;
        log.warn({ address: name, ms: this.circuit.closedForMs }, "upstream circuit breaker opened");
      },
      onClose: () => log.info({ address: name }, "an upstream is back"),
    });
  }

  /** Whether it is ejected now; reading this also notices the end of an ejection. */
  get isEjected(): boolean {
    if (this.#ejectedUntil === 0) return false;
    if (performance.now() < this.#ejectedUntil) return true;
    this.#ejectedUntil = 0;
    this.#readmittedAt = performance.now();
    this.errors.clear();
    this.#options.log.info({ address: this.name }, "an upstream address is called again");
    this.#options.noteDecision("readmitted");
    return false;
  }

  /** Ejects the address, for a time that doubles while it comes back no better. */
  eject(): void {
    const { ejectMs, log } = this.#options;
    const relapsed = performance.now() - this.#readmittedAt < MAX_EJECTION_MS;
    this.#ejections = relapsed ? this.#ejections + 1 : 1;
    const ms = backoffMs(this.#ejections - 1, ejectMs, MAX_EJECTION_MS);
    this.#ejectedUntil = performance.now() + ms;
    const share = this.errors.share;
    log.warn({ address: this.name, ms, share }, "an upstream address fails more than others and is left out");
  }

  /**
   * Makes a call to this address. Without generators, because every call passes here.
   *
   * @param attempt makes the call, and never throws before it returns; it reports when the address has the whole request and must answer
   */
  run<R>(call: Notes, attempt: (target: T, onSent: () => void) => Promise<R>): Promise<R> {
    const turn = this.circuit.enter();
    if (turn === undefined) return Promise.reject(refusal(call, this.circuit.closedForMs));
    if (turn.isProbe) call.note("circuit_half_open");
    const timer = turn.isProbe ? this.#watchProbe(call, turn) : undefined;
    let sentAt: number | undefined;
    this.pending += 1;
    const onEnd = () => {
      clearTimeout(timer);
      this.pending -= 1;
    };
    return attempt(this.target, () => {
      sentAt = performance.now();
    }).then(
      (result) => {
        this.#tell(call, turn, "working");
        onEnd();
        return result;
      },
      (error: unknown) => {
        const health = healthOf(error);
        if (error instanceof LanceError && error.fault === "crowded") call.note("crowded");
        const isSilent = health === "unknown" && sentAt !== undefined && this.#isSilentSince(sentAt);
        this.#tell(call, turn, isSilent ? "failing" : health);
        onEnd();
        throw error;
      },
    );
  }

  /** A probe without an answer must not keep other calls away for as long as its caller waits. */
  #watchProbe(call: Notes, turn: Turn): NodeJS.Timeout | undefined {
    const { silenceMs } = this.#options;
    if (silenceMs === 0) return undefined;
    const startedAt = performance.now();
    return setTimeout(() => {
      // Answers to calls from before prove nothing, so that another call has to probe.
      this.#tell(call, turn, this.#isSilentSince(startedAt) ? "failing" : "unknown");
    }, silenceMs);
  }

  /** Whether no call was answered since a time that is long enough ago. */
  #isSilentSince(time: number): boolean {
    const { silenceMs } = this.#options;
    return silenceMs > 0 && this.#heardAt <= time && performance.now() - time >= silenceMs;
  }

  #tell(call: Notes, turn: Turn, health: Health): void {
    turn.tell(health);
    if (health === "working") this.#heardAt = performance.now();
    if (health !== "unknown") this.errors.add(health === "failing");
    if (this.#hasOpened) call.note("circuit_open");
    this.#hasOpened = false;
    if (health === "failing" && this.#options.ejectOutlier(this)) call.note("ejected");
  }
}

/** Duration of a half of the window, in milliseconds. */
const HALF_MS = 10_000;

/** Measures the recent failure rate of an address: over this half of a window and the previous one. */
class ErrorShare {
  #began = 0;
  #calls = 0;
  #failures = 0;
  #callsBefore = 0;
  #failuresBefore = 0;

  add(failed: boolean): void {
    this.#move();
    this.#calls += 1;
    if (failed) this.#failures += 1;
  }

  /** Number of calls in the window. */
  get calls(): number {
    this.#move();
    return this.#calls + this.#callsBefore;
  }

  /** Failure rate, from 0 to 1. */
  get share(): number {
    const { calls } = this;
    return calls === 0 ? 0 : (this.#failures + this.#failuresBefore) / calls;
  }

  /** Forgets everything. */
  clear(): void {
    this.#calls = this.#failures = this.#callsBefore = this.#failuresBefore = 0;
  }

  #move(): void {
    const halves = Math.floor((performance.now() - this.#began) / HALF_MS);
    if (halves === 0) return;
    const recent = halves === 1;
    this.#callsBefore = recent ? this.#calls : 0;
    this.#failuresBefore = recent ? this.#failures : 0;
    this.#calls = this.#failures = 0;
    this.#began = recent ? this.#began + HALF_MS : performance.now();
  }
}
