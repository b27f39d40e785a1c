import { randomUUID } from "node:crypto";
import { BroadcastChannel } from "node:worker_threads";
import type { Identifier } from "../../namespace/identifier.ts";
import { putNewest } from "../../runtime/collections.ts";

/** The tables on which this process has seen jobs last. */
export interface NotedTables {
  /** Remembers a table that has jobs. */
  note(id: Identifier): void;
  /** Returns the tables that any worker of the process remembers; a worker that does not answer in time is left out. */
  all(): Promise<readonly Identifier[]>;
  close(): void;
}

/** Options of {@link createNotedTables}. */
export interface NotedTablesOptions {
  /** Maximum number of tables; the newest take the place of the oldest. */
  readonly most: number;
  /** Name of the catalog if several workers of the process serve it. Default: a single thread serves it. */
  readonly shared?: string | undefined;
  /** Number of workers of the process. Default: 1. */
  readonly workers?: number | undefined;
}

/** Message from a worker to the others: a table, a question for all tables, or the answer to one. */
type Message =
  | { readonly noted: Identifier }
  | { readonly asks: string }
  | { readonly answers: string; readonly tables: readonly Identifier[] };

/** Longest wait for the other workers, in milliseconds: the loop of one may be blocked. */
const WAIT_MS = 500;

/**
 * Creates the record of the tables. Workers tell each other of new ones, so that a table outlives the worker that has seen its jobs. A list asks the
 * others as well: their messages arrive in order, so it has the table of each job that was started before.
 */
export function createNotedTables({ most, shared, workers = 1 }: NotedTablesOptions): NotedTables {
  const tables = new Map<string, Identifier>();
  const waiting = new Map<string, () => void>();
  const keep = (id: Identifier) => void putNewest(tables, JSON.stringify(id), id, most);
  const channel = shared === undefined ? undefined : new BroadcastChannel(`jobs of ${shared}`);
  const post = (message: Message) => channel?.postMessage(message);

  function receive(message: Message): void {
    if ("noted" in message) keep(message.noted);
    else if ("asks" in message) post({ answers: message.asks, tables: [...tables.values()] });
    else {
      const answered = waiting.get(message.answers);
      if (answered === undefined) return;
      for (const id of message.tables) if (!tables.has(JSON.stringify(id))) keep(id);
      answered();
    }
  }
  if (channel !== undefined) {
    channel.onmessage = ({ data }) => receive(data as Message);
    channel.unref();
  }
  return {
    note(id) {
      if (!tables.has(JSON.stringify(id))) post({ noted: id });
      keep(id);
    },
    async all() {
      let left = channel === undefined ? 0 : workers - 1;
      if (left > 0) {
        const question = randomUUID();
        const { promise, resolve } = Promise.withResolvers<void>();
        waiting.set(question, () => {
          left -= 1;
          if (left === 0) resolve();
        });
        const late = setTimeout(resolve, WAIT_MS);
        post({ asks: question });
        await promise;
        clearTimeout(late);
        waiting.delete(question);
      }
      return [...tables.values()];
    },
    close: () => channel?.close(),
  };
}
