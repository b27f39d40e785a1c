import type { ErrorName } from "../../src/namespace/errors.ts";
import type { Operation } from "../../src/namespace/lance-namespace.ts";
import type { LanceClient } from "../support/client.ts";

/** A call that must have equal outcomes on every wire. */
export interface Scenario {
  readonly operation: Operation;
  /** The special feature of the call. */
  readonly name: string;
  /** The expected error; without it, the call must succeed. */
  readonly fails?: ErrorName;
  /**
   * Makes the call and returns its answer. The namespace `ns` belongs to the wire and contains the table `t` of five
   * people, the declared table `d` and the namespace `child`.
   */
  run(client: LanceClient, ns: string): Promise<unknown>;
}

/** A text that is easy to encode wrongly. */
export const text = 'a "quoted" text\\ with \u00e9, \u{1f600} and \u2028';
