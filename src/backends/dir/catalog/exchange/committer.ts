import type { MessagePort } from "node:worker_threads";
import { isThreadEnding } from "../../../../runtime/threads/unbroken-work.ts";
import type { Mutation } from "../commits/decide.ts";
import type { Draft } from "../state/draft.ts";
import {
  ageOf,
  type Decided,
  type FromCommitter,
  type MadeVersion,
  type RemoteOutcome,
  type SharedVersion,
  type ToCommitter,
  toPlain,
} from "./messages.ts";
import { stillHold } from "./observed-view.ts";

/** The worker of a process that commits the mutations of all workers. */
export interface Committer {
  /** Serves another worker. */
  serve(port: MessagePort): void;
  /** Tells the other workers of a new version. */
  tell(made: MadeVersion): void;
  /** Refuses further mutations of other workers, which then commit themselves. */
  close(): void;
}

/**
 * Age from which a decision is not committed, in milliseconds. A mutation may also look at what is not in the catalog,
 * such as its lease, and must look again after a wait.
 */
const MAX_AGE_MS = 5_000;

/** A catalog as its committer uses it. */
export interface CommitterOptions {
  /** Queues a mutation for the next commit. */
  readonly mutateHere: <T>(mutation: Mutation<T>) => Promise<T>;
  /** Removes the verdict of a change with the next commit. */
  readonly forgetHere: (changeId: string) => void;
  /** Waits until the running commit, if there is one, is applied to the state. */
  readonly applied: () => Promise<void>;
  /** Returns the newest version for other workers; undefined if it has none that they can recognise. */
  readonly shareHere: () => Promise<SharedVersion | undefined>;
}

/** Creates the part of a catalog that commits for other workers. */
export function createCommitter({ mutateHere, forgetHere, applied, shareHere }: CommitterOptions): Committer {
  const ports = new Set<MessagePort>();
  let isClosed = false;

  async function commit(decided: Decided): Promise<RemoteOutcome> {
    return isClosed || isThreadEnding()
      ? "closed"
      : mutateHere((draft) => apply(decided, draft)).catch(toPlain);
  }
  async function answer(message: ToCommitter): Promise<FromCommitter | undefined> {
    switch (message.type) {
      case "forget":
        forgetHere(message.changeId);
        return undefined;
      case "catch up":
        await applied();
        return { type: "caught up", id: message.id };
      case "share":
        // The other worker then reads the storage itself, and finds what is wrong.
        return { type: "shared", id: message.id, shared: await shareHere().catch(() => undefined) };
      case "commit":
        return { type: "outcome", id: message.id, outcome: await commit(message.decided) };
    }
  }
  const post = (port: MessagePort, message: FromCommitter) => port.postMessage(message);
  return {
    serve(port) {
      ports.add(port);
      port.on("close", () => ports.delete(port));
      port.on("message", async (message: ToCommitter) => {
        const reply = await answer(message);
        if (reply !== undefined) post(port, reply);
      });
      port.unref();
    },
    tell(made) {
      for (const port of ports) post(port, { type: "made", made });
    },
    close() {
      isClosed = true;
    },
  };
}

/** Applies a decision of another worker, unless it would be decided differently now. */
function apply({ observations, changes, recorded, at }: Decided, draft: Draft): RemoteOutcome {
  if (ageOf(at) > MAX_AGE_MS) return "late";
  if (!stillHold(observations, draft)) return "stale";
  for (const [objectId, row] of changes) {
    if (row === undefined) draft.delete(objectId);
    else draft.put(row);
  }
  for (const [changeId, verdict] of recorded) draft.record(changeId, verdict);
  return "committed";
}
