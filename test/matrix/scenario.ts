import type { ErrorName } from "../../src/namespace/errors.ts";
import type { Operation } from "../../src/namespace/lance-namespace.ts";
import type { LanceClient } from "../support/client.ts";

/** One call that has to come out alike on every wire. */
export interface Scenario {
  readonly operation: Operation;
  /** What is special about the call. */
  readonly name: string;
  /** The error that it has to end in; without it, it has to succeed. */
  readonly fails?: ErrorName;
  /**
   * Makes the call and hands out its answer. The namespace `ns` is the wire's own and holds the table `t` of five
   * people, the declared table `d` and the namespace `child`.
   */
  run(client: LanceClient, ns: string): Promise<unknown>;
}

/** A text that is easy to encode wrongly. */
export const text = 'a "quoted" text\\ with \u00e9, \u{1f600} and \u2028';
