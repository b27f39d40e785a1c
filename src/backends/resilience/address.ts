import { BrokenCircuitError } from "cockatiel";
import type { Logger } from "pino";
import type { NoteDecision } from "../../namespace/decisions.ts";
import { Circuit } from "./circuit.ts";
import { ErrorShare } from "./error-share.ts";
import { healthOf } from "./faults.ts";
import type { Endpoint, ResilientCall } from "./port.ts";
import { refusal } from "./refusal.ts";

/** The longest time that an address is left out, in milliseconds. */
const MAX_EJECTION_MS = 300_000;

/** What the addresses of an upstream share. */
export interface AddressOptions<T> {
  readonly circuitFailures: number;
  readonly circuitOpenMs: number;
  readonly ejectMs: number;
  /** Leaves an address out that has failed, if that is called for; whether it did. */
  readonly ejectOutlier: (address: Address<T>) => boolean;
  readonly log: Logger;
  readonly noteDecision: NoteDecision;
}

/** One address of an upstream, and how it has done lately. */
export class Address<T> {
  readonly target: T;
  readonly name: string;
  readonly circuit: Circuit;
  readonly errors = new ErrorShare();
  /** How many calls wait for it. */
  pending = 0;
  readonly #options: AddressOptions<T>;
  /** Whether its circuit has opened and no call tells of that yet. */
  #hasOpened = false;
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
      onOpen: () => {
        this.#hasOpened = true;
        log.warn(
          { address: name, ms: this.circuit.closedForMs },
          "an upstream fails and is not called for a while",
        );
      },
      onClose: () => log.info({ address: name }, "an upstream is back"),
    });
  }

  /** Whether it is left out for now; the end of that is noticed here. */
  get isEjected(): boolean {
    if (this.#ejectedUntil === 0) return false;
    if (Date.now() < this.#ejectedUntil) return true;
    this.#ejectedUntil = 0;
    this.#readmittedAt = Date.now();
    this.errors.clear();
    this.#options.log.info({ address: this.name }, "an upstream address is called again");
    this.#options.noteDecision("readmitted");
    return false;
  }

  /** Leaves it out for a time that doubles while it comes back no better. */
  eject(): void {
    const { ejectMs, log } = this.#options;
    const relapsed = Date.now() - this.#readmittedAt < MAX_EJECTION_MS;
    this.#ejections = relapsed ? this.#ejections + 1 : 1;
    const ms = Math.min(MAX_EJECTION_MS, ejectMs * 2 ** (this.#ejections - 1));
    this.#ejectedUntil = Date.now() + ms;
    const share = this.errors.share;
    log.warn({ address: this.name, ms, share }, "an upstream address fails more than others and is left out");
  }

  /** Makes a call here. */
  async run<R>(call: ResilientCall, attempt: (target: T) => Promise<R>): Promise<R> {
    if (!this.circuit.isClosed) call.note("circuit_half_open");
    this.pending += 1;
    try {
      const result = await this.circuit.run(() => attempt(this.target));
      this.errors.add(false);
      return result;
    } catch (error) {
      if (error instanceof BrokenCircuitError) throw refusal(call, this.circuit.closedForMs);
      this.#tellFailure(call, error);
      throw error;
    } finally {
      this.pending -= 1;
    }
  }

  #tellFailure(call: ResilientCall, error: unknown): void {
    const health = healthOf(error);
    if (health !== "unknown") this.errors.add(health === "failing");
    if (this.#hasOpened) call.note("circuit_open");
    this.#hasOpened = false;
    if (health === "failing" && this.#options.ejectOutlier(this)) call.note("ejected");
  }
}
