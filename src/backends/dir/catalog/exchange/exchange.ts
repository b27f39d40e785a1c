import type { MessagePort } from "node:worker_threads";
import type { SharedDatabase } from "../../../../runtime/threads/sharing.ts";
import { isThreadEnding } from "../../../../runtime/threads/unbroken-work.ts";
import type { Mutation } from "../commits/decide.ts";
import type { Committed } from "../manifest/prepared-commit.ts";
import type { Draft } from "../state/draft.ts";
import type { Changes } from "../state/view.ts";
import { createForwarder, type ForwarderOptions } from "./forwarder.ts";
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

/** The catalog of a worker among those of the process's other workers. */
export interface Exchange {
  /** Commits a mutation, together with those of all workers. @throws the errors of a catalog's `mutate` */
  mutate<T>(mutation: Mutation<T>): Promise<T>;
  /** Has the verdict of a change removed by the worker that commits. */
  forget(changeId: string): void;
  /** Waits a moment for a version that another worker is about to tell; undefined if this one commits. */
  catchUp(): Promise<void> | undefined;
  /** Returns the newest version as the committing worker has it in memory; undefined if this one has to read it. */
  share(): Promise<SharedVersion | undefined>;
  /** Notes that the state in memory has changed. */
  noteChange(): void;
  /** Tells the other workers of a version that this one has made, if it commits for them. */
  tell(base: number, changes: Changes, committed: Committed): void;
  /** Commits no longer for the other workers, or through the one that commits. */
  close(): void;
}

/** A catalog as its exchange uses it. */
export interface ExchangeOptions extends ForwarderOptions, CommitterOptions {}

/**
 * Joins the catalogs of a process's workers, so that their mutations form groups: the first worker commits for all.
 * While it is being replaced, the others commit on their own, in turn. The others read its rows in memory.
 */
export function joinExchange(
  { isFirst, commitPorts }: Pick<SharedDatabase, "isFirst" | "commitPorts">,
  options: ExchangeOptions,
): Exchange {
  if (!isFirst) {
    const { connect, close, ...forwarder } = createForwarder(options);
    const leave = commitPorts(connect);
    return {
      ...forwarder,
      tell() {},
      close() {
        leave();
        close();
      },
    };
  }
  const committer = createCommitter(options);
  const leave = commitPorts(committer.serve);
  return {
    mutate: options.mutateHere,
    forget() {},
    catchUp: () => undefined,
    share: async () => undefined,
    noteChange() {},
    tell(base, changes, { version, addresses, file, bytes }) {
      committer.tell({ base, version, changes, addresses, file: { key: file.key, bytes } });
    },
    close() {
      leave();
      committer.close();
    },
  };
}

/** The worker of a process that commits the mutations of all workers. */
interface Committer {
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
interface CommitterOptions {
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
function createCommitter({ mutateHere, forgetHere, applied, shareHere }: CommitterOptions): Committer {
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
