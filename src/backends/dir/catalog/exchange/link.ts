import type { MessagePort } from "node:worker_threads";
import { within } from "../../../../runtime/time/within.ts";
import type {
  Decided,
  FromCommitter,
  MadeVersion,
  RemoteOutcome,
  SharedVersion,
  ToCommitter,
} from "./messages.ts";

/** A committing worker that can be asked. */
export interface Link {
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
