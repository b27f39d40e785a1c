import type { MessagePort } from "node:worker_threads";
import type { Mutation } from "../decide.ts";
import type { Draft } from "../draft.ts";
import { ageOf } from "./instant.ts";
import type { Decided, FromCommitter, MadeVersion, RemoteOutcome, ToCommitter } from "./messages.ts";
import { stillHold } from "./observed-view.ts";
import { toPlain } from "./plain-error.ts";

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

/**
 * Creates the part of a catalog that commits for other workers.
 *
 * @param mutate queues a mutation for the next commit
 * @param forget removes the verdict of a change with the next commit
 * @param applied waits until the running commit is applied to the state
 */
export function createCommitter(
  mutate: (mutation: Mutation<RemoteOutcome>) => Promise<RemoteOutcome>,
  forget: (changeId: string) => void,
  applied: () => Promise<void>,
): Committer {
  const ports = new Set<MessagePort>();
  let isClosed = false;

  async function commit(decided: Decided): Promise<RemoteOutcome> {
    return isClosed ? "closed" : mutate((draft) => apply(decided, draft)).catch(toPlain);
  }
  const post = (port: MessagePort, message: FromCommitter) => port.postMessage(message);
  return {
    serve(port) {
      ports.add(port);
      port.on("close", () => ports.delete(port));
      port.on("message", async (message: ToCommitter) => {
        if (message.type === "forget") return forget(message.changeId);
        if (message.type === "catch up") {
          await applied();
          return post(port, { type: "caught up", id: message.id });
        }
        const outcome = await commit(message.decided);
        post(port, { type: "outcome", id: message.id, outcome });
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
function apply({ observations, changes, recorded, at }: Decided, draft: Draft): "committed" | "stale" {
  if (ageOf(at) > MAX_AGE_MS || !stillHold(observations, draft)) return "stale";
  for (const [objectId, row] of changes) {
    if (row === undefined) draft.delete(objectId);
    else draft.put(row);
  }
  for (const [changeId, verdict] of recorded) draft.record(changeId, verdict);
  return "committed";
}
