import assert from "node:assert/strict";
import { CallError, type LanceClient } from "../../support/client.ts";
import type { Random } from "../../support/random.ts";
import { type Action, drawAction } from "./actions.ts";
import { type Domain, describeState, observe, type State, sameState } from "./state.ts";

/** A client that changes its own objects, one call after the other, and remembers the acknowledged calls. */
export interface Worker {
  /** Works until a call has no answer because the server has gone. */
  run(client: LanceClient): Promise<void>;
  /**
   * Compares the state of a server with the acknowledged calls; the call without an answer may have happened or not.
   * Work continues from that state.
   */
  check(client: LanceClient): Promise<void>;
  /** Number of acknowledged calls. */
  readonly acknowledged: number;
}

/** Creates the worker of a domain. */
export function createWorker(domain: Domain, random: Random): Worker {
  let state: State = new Map();
  let open: Action | undefined;
  let serial = 0;
  let acknowledged = 0;
  return {
    get acknowledged() {
      return acknowledged;
    },
    async run(client) {
      for (;;) {
        open = drawAction({ domain, state, random, serial: serial++ });
        try {
          await open.call(client);
        } catch (error) {
          if (!isCutOff(error)) throw new Error(`${open.what} was refused`, { cause: error });
          return;
        }
        state = open.after;
        open = undefined;
        acknowledged++;
      }
    },
    async check(client) {
      const found = await observe(client, domain);
      const allowed = [state, open?.after, open?.between].filter((each) => each !== undefined);
      const fits = allowed.some((each) => sameState(each, found));
      assert.ok(
        fits,
        [`after "${open?.what}" the server has`, describeState(found), "and not", describeState(state)].join(
          "\n",
        ),
      );
      state = found;
      open = undefined;
    },
  };
}

/** Whether a call failed because the server had gone, rather than by its refusal. */
function isCutOff(error: unknown): boolean {
  return !(error instanceof CallError) || error.failure.code === undefined;
}
