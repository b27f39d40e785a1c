import { setTimeout as sleep } from "node:timers/promises";
import type { MessagePort } from "node:worker_threads";
import { LanceError } from "../../../../namespace/errors.ts";
import { stepsOf } from "../../../../namespace/pace.ts";
import type { Mutation, Outcome } from "../decide.ts";
import { createDraft } from "../draft.ts";
import type { CatalogState } from "../state.ts";
import { inSlicesOn, StateChanged } from "../steps.ts";
import { now } from "./instant.ts";
import type { Decided, FromCommitter, MadeVersion, RemoteOutcome, ToCommitter } from "./messages.ts";
import { observe } from "./observed-view.ts";
import { fromPlain } from "./plain-error.ts";

/** The way of a worker's mutations to the worker that commits for all. */
export interface Forwarder {
  /** Commits from now on through the worker at the other end of a port, until that worker ends. */
  connect(port: MessagePort): void;
  /**
   * Commits a mutation: through the committing worker, or itself while there is none.
   *
   * @throws LanceError the error of the mutation; the errors of the commit; ConcurrentModification if the state kept
   *   changing; OutcomeUnknown if the committing worker ends meanwhile, and then it may be committed or not
   */
  mutate<T>(mutation: Mutation<T>): Promise<T>;
  forget(changeId: string): void;
  /** Waits a moment for a version that the committing worker is about to tell; undefined if there is none. */
  catchUp(): Promise<void> | undefined;
}

/** A catalog as its forwarder uses it. */
export interface ForwarderOptions {
  /** Returns the state in memory, which may be old. */
  readonly known: () => CatalogState;
  /** Brings the state up to date. */
  readonly refresh: () => Promise<void>;
  /** Commits a mutation in this worker. */
  readonly mutateHere: <T>(mutation: Mutation<T>) => Promise<T>;
  /** Applies a version that the committing worker has made to the state. */
  readonly adopt: (made: MadeVersion) => void;
  /** Maximum number of times that a mutation is decided again. */
  readonly maxRetries: number;
}

/** Answer of the committing worker, or that it has ended before. */
type Answer = RemoteOutcome | "caught up" | "lost";

/** Longest wait for a version that the committing worker makes, in milliseconds; reading it from the storage costs more. */
const MAX_CATCH_UP_MS = 100;

/** Maximum number of rows that a sent mutation reads and changes: the committing worker takes it in without a pause. */
const MAX_SENT = 1_024;

/** A committing worker that can be asked. */
interface Link {
  commit(decided: Decided): Promise<Answer>;
  catchUp(): Promise<Answer>;
  forget(changeId: string): void;
}

/** Creates the forwarder of a worker. */
export function createForwarder(options: ForwarderOptions): Forwarder {
  const { known, refresh, mutateHere, maxRetries } = options;
  let committer: Link | undefined;

  return {
    connect(port) {
      const link = openLink(port, options.adopt, () => {
        if (committer === link) committer = undefined;
      });
      committer = link;
    },
    async mutate<T>(mutation: Mutation<T>): Promise<T> {
      for (let tries = 0; tries <= maxRetries; tries++) {
        const link = committer;
        if (link === undefined) return mutateHere(mutation);
        const decision = await decideOn(known(), mutation);
        if (decision === undefined) return mutateHere(mutation);
        const { decided, outcome } = decision;
        const answer = await link.commit(decided);
        if (answer === "committed") {
          if ("error" in outcome) throw outcome.error;
          return outcome.answer as T;
        }
        if (answer === "lost") throw lost();
        if (answer === "closed") return mutateHere(mutation);
        if (typeof answer === "object") throw fromPlain(answer);
        await refresh();
      }
      throw new LanceError("ConcurrentModification", "the catalog kept changing; try again");
    },
    forget(changeId) {
      committer?.forget(changeId);
    },
    catchUp: () => committer && waitBriefly(committer.catchUp()),
  };
}

async function waitBriefly(answer: Promise<Answer>): Promise<void> {
  const late = new AbortController();
  const { signal } = late;
  await Promise.race([answer, sleep(MAX_CATCH_UP_MS, undefined, { signal, ref: false }).catch(() => {})]);
  late.abort();
}

/** Talks to the committing worker at the other end of a port, until it ends. */
function openLink(port: MessagePort, adopt: (made: MadeVersion) => void, onLost: () => void): Link {
  const waiting = new Map<number, (answer: Answer) => void>();
  let requests = 0;
  const post = (message: ToCommitter) => port.postMessage(message);

  port.on("message", (message: FromCommitter) => {
    if (message.type === "made") return adopt(message.made);
    waiting.get(message.id)?.(message.type === "outcome" ? message.outcome : "caught up");
    waiting.delete(message.id);
  });
  port.on("close", () => {
    onLost();
    for (const resolve of waiting.values()) resolve("lost");
  });
  port.unref();
  function ask(toMessage: (id: number) => ToCommitter): Promise<Answer> {
    const id = requests++;
    return new Promise((resolve) => {
      waiting.set(id, resolve);
      post(toMessage(id));
    });
  }
  return {
    commit: (decided) => ask((id) => ({ type: "commit", id, decided })),
    catchUp: () => ask((id) => ({ type: "catch up", id })),
    forget: (changeId) => post({ type: "forget", changeId }),
  };
}

/**
 * Decides a mutation on a state, and records on what the decision depends. A refusal depends on the state, too.
 *
 * @returns undefined for a mutation that is too large to be sent: its steps would also start again and again while others
 *   commit
 */
async function decideOn(
  state: CatalogState,
  mutation: Mutation<unknown>,
): Promise<{ readonly decided: Decided; readonly outcome: Outcome } | undefined> {
  const observed = observe(state);
  const { observations } = observed;
  const draft = createDraft(observed.view);
  const at = now();
  const isLarge = () => observed.size + draft.changes.size > MAX_SENT;
  try {
    const answer = await inSlicesOn(state, stepsOf(mutation(draft)));
    const [changes, recorded] = [[...draft.changes], [...draft.recorded]];
    return isLarge() ? undefined : { decided: { observations, changes, recorded, at }, outcome: { answer } };
  } catch (error) {
    if (error instanceof StateChanged || isLarge()) return undefined;
    return { decided: { observations, changes: [], recorded: [], at }, outcome: { error } };
  }
}

function lost(): LanceError {
  return new LanceError(
    "OutcomeUnknown",
    "the worker that commits ended meanwhile; the change may be stored or not; look before you repeat it",
  );
}
