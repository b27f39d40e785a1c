import type { SharedDatabase } from "../../../../runtime/threads/sharing.ts";
import type { Mutation } from "../commits/decide.ts";
import type { Committed } from "../manifest/prepared-commit.ts";
import type { Changes } from "../state/view.ts";
import { type CommitterOptions, createCommitter } from "./committer.ts";
import { createForwarder, type ForwarderOptions } from "./forwarder.ts";
import type { SharedVersion } from "./messages.ts";

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
