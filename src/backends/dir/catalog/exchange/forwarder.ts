import { setTimeout as sleep } from "node:timers/promises";
import type { MessagePort } from "node:worker_threads";
import { LanceError } from "../../../../namespace/errors.ts";
import { stepsOf } from "../../../../runtime/pace.ts";
import { within } from "../../../../runtime/promises.ts";
import type { Mutation, Outcome } from "../commits/decide.ts";
import { createDraft } from "../state/draft.ts";
import type { CatalogState } from "../state/state.ts";
import { inSlicesOn, StateChanged } from "../state/steps.ts";
import {
  type Decided,
  type FromCommitter,
  fromPlain,
  type MadeVersion,
  now,
  type RemoteOutcome,
  type SharedVersion,
  type ToCommitter,
} from "./messages.ts";
import { observe } from "./observed-view.ts";

/** The way of a worker's mutations to the worker that commits for all. */
export interface Forwarder {
  /** Commits from now on through the worker at the other end of a port, until that worker ends. */
  connect(port: MessagePort): void;
  /**
   * Commits a mutation: through the committing worker, or itself while there is none, or while that worker takes too long.
   *
   * @throws LanceError the error of the mutation; the errors of the commit; ConcurrentModification if the state kept
   *   changing; OutcomeUnknown if the committing worker ends meanwhile, and then it may be committed or not
   */
  mutate<T>(mutation: Mutation<T>): Promise<T>;
  forget(changeId: string): void;
  /** Waits a moment for a version that the committing worker is about to tell; undefined if there is none. */
  catchUp(): Promise<void> | undefined;
  /** Returns the newest version as the committing worker has it in memory; undefined if it cannot be asked. */
  share(): Promise<SharedVersion | undefined>;
  /** Notes that the state has changed, and so may have taken memory of its own. */
  noteChange(): void;
  /** Ends the connection once all mutations that were sent are answered; later ones are committed here. */
  close(): void;
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
  /** Takes over the memory of the committing worker, if that has the version of the state. */
  readonly replace: (shared: SharedVersion) => void;
  /** Maximum number of times that a mutation is decided again. */
  readonly maxRetries: number;
}

/** Longest wait for a version that the committing worker makes, in milliseconds; reading it from the storage costs more. */
const MAX_CATCH_UP_MS = 100;

/** Maximum number of rows that a sent mutation reads and changes: the committing worker takes it in without a pause. */
const MAX_SENT = 1_024;

/** Creates the forwarder of a worker. */
export function createForwarder(options: ForwarderOptions): Forwarder {
  const { known, refresh, mutateHere, maxRetries } = options;
  let committer: Link | undefined;
  let resharing: Resharing | undefined;

  return {
    connect(port) {
      const link = openLink(port, options.adopt, () => {
        if (committer === link) committer = undefined;
      });
      committer = link;
      resharing = createResharing(known, link.share, options.replace);
      resharing.note();
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
        // The next decision would wait as long as a late one.
        if (answer === "closed" || answer === "late") return mutateHere(mutation);
        if (typeof answer === "object") throw fromPlain(answer);
        await refresh();
      }
      throw new LanceError("ConcurrentModification", "the catalog kept changing; try again");
    },
    forget(changeId) {
      committer?.forget(changeId);
    },
    catchUp: () => committer && waitBriefly(committer.catchUp()),
    share: async () => committer?.share(),
    noteChange: () => resharing?.note(),
    close: () => committer?.close(),
  };
}

async function waitBriefly(answer: Promise<void>): Promise<void> {
  const late = new AbortController();
  const { signal } = late;
  await Promise.race([answer, sleep(MAX_CATCH_UP_MS, undefined, { signal, ref: false }).catch(() => {})]);
  late.abort();
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

/** Memory of its own that a worker's state may take: a fixed part, and a part for each row. In bytes. */
const FIXED_BYTES = 2 * 1024 * 1024;
const BYTES_PER_ROW = 8;

/** Shortest time between two requests, in milliseconds. */
const PAUSE_MS = 1_000;

/** Keeps the memory of a worker's state small. */
interface Resharing {
  /** Looks at the state, which has changed. */
  note(): void;
}

/**
 * Creates the resharing of a worker: it takes over the memory of the committing worker whenever its own state, which
 * copies what it changes, has taken too much.
 *
 * @param share asks the committing worker for its newest version
 * @param replace takes over a version, if that is possible
 */
function createResharing(
  known: () => CatalogState,
  share: () => Promise<SharedVersion | undefined>,
  replace: (shared: SharedVersion) => void,
): Resharing {
  let isAsking = false;
  let askedAt = Number.NEGATIVE_INFINITY;

  async function ask(): Promise<void> {
    const shared = await share();
    if (shared !== undefined) replace(shared);
    isAsking = false;
  }
  return {
    note() {
      const { ownBytes, size } = known();
      const now = performance.now();
      if (isAsking || ownBytes <= FIXED_BYTES + size * BYTES_PER_ROW || now - askedAt < PAUSE_MS) return;
      isAsking = true;
      askedAt = now;
      void ask();
    },
  };
}

/** A committing worker that can be asked. */
interface Link {
  /** @returns "lost" if the worker ends before it answers; "closed" if it had ended before it was asked */
  commit(decided: Decided): Promise<RemoteOutcome | "lost">;
  /** Waits until the versions that are being made have been told. */
  catchUp(): Promise<void>;
  /** Returns the newest version; undefined if the worker does not have it in time, or has ended. */
  share(): Promise<SharedVersion | undefined>;
  forget(changeId: string): void;
  /** Closes the port after the last answer. An open port keeps both catalogs in memory. */
  close(): void;
}

/** A message that answers another one. */
type Reply = Extract<FromCommitter, { readonly id: number }>;

/**
 * Longest wait for the newest version, in milliseconds: the worker may read the storage for it. Its supervisor notices that its event loop
 * is blocked, and not that its storage hangs.
 */
const MAX_SHARE_MS = 30_000;

/**
 * Talks to the committing worker at the other end of a port, until it ends.
 *
 * @param onMade called with each version that it makes
 */
export function openLink(port: MessagePort, onMade: (made: MadeVersion) => void, onLost: () => void): Link {
  const waiting = new Map<number, (reply: Reply | undefined) => void>();
  let requests = 0;
  let isClosed = false;
  let isEnding = false;
  const post = (message: ToCommitter) => port.postMessage(message);

  port.on("message", (message: FromCommitter) => {
    if (message.type === "made") return onMade(message.made);
    waiting.get(message.id)?.(message);
    waiting.delete(message.id);
    closeAtEnd();
  });
  port.on("close", () => {
    isClosed = true;
    onLost();
    for (const resolve of waiting.values()) resolve(undefined);
    // Others may keep the port, and would keep the catalog with it.
    port.removeAllListeners();
  });
  port.unref();
  function closeAtEnd(): void {
    if (isEnding && waiting.size === 0) port.close();
  }
  async function ask(toMessage: (id: number) => ToCommitter): Promise<Reply | undefined> {
    // A closed port takes messages without a word, and nobody would answer.
    if (isClosed || isEnding) return undefined;
    const id = requests++;
    return new Promise((resolve) => {
      waiting.set(id, resolve);
      post(toMessage(id));
    });
  }
  return {
    async commit(decided) {
      if (isClosed || isEnding) return "closed";
      const reply = await ask((id) => ({ type: "commit", id, decided }));
      return reply?.type === "outcome" ? reply.outcome : "lost";
    },
    async catchUp() {
      await ask((id) => ({ type: "catch up", id }));
    },
    async share() {
      const asked = ask((id) => ({ type: "share", id }));
      const reply = await within(MAX_SHARE_MS, asked, () => new Error("late")).catch(() => undefined);
      return reply?.type === "shared" ? reply.shared : undefined;
    },
    forget: (changeId) => post({ type: "forget", changeId }),
    close() {
      isEnding = true;
      closeAtEnd();
    },
  };
}
