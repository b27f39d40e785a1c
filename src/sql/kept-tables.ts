import { LanceError } from "../namespace/errors.ts";
import { putNewest } from "../runtime/collections.ts";
import type { SqlType } from "./column-types.ts";
import type { Conversation } from "./conversation.ts";
import type { EngineProcess } from "./process/engine-process.ts";
import type { ScannedTable } from "./process/messages.ts";
import type { SqlTable, SqlTables } from "./sql-engine.ts";

/** Tables of a statement, and what reads them. */
export interface StatementReads {
  /** Key of the caller. A process keeps the tables of one caller at a time. */
  readonly caller: string;
  readonly tables: SqlTables;
  readonly open: readonly SqlTable[];
  readonly scanned: readonly ScannedTable[];
  readonly signal: AbortSignal;
}

/** Tables whose rows a process keeps in the engine's own form, so that statements about the same state of a table do not read it again. */
export interface KeptTables {
  /** Makes a process forget the tables of another caller. */
  enter(process: EngineProcess, caller: string, conversation: Conversation): Promise<void>;
  /** Counts bytes of a table that a statement has read. */
  count(caller: string, table: SqlTable, bytes: number): void;
  /** Passes on the rows of a table that is loaded. @throws LanceError PayloadTooLarge for more of them than may be kept */
  bounded(rows: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array>;
  /** Returns the state of each table that is kept or worth it; undefined for the others. Each is authorized as a read. */
  statesOf(reads: StatementReads): Promise<readonly (string | undefined)[]>;
  /**
   * Returns the names of the tables that a process keeps, by their positions in the statement, after it has read those that are worth it.
   *
   * @param read reads a table while the process loads it
   */
  use(
    process: EngineProcess,
    conversation: Conversation,
    reads: Pick<StatementReads, "caller" | "open" | "scanned">,
    states: readonly (string | undefined)[],
    read: (table: SqlTable, load: () => Promise<number>) => Promise<number>,
  ): Promise<ReadonlyMap<number, string>>;
}

/** A table that a process keeps. */
interface Kept {
  readonly name: string;
  readonly state: string;
}

/** What a process keeps. */
interface Held {
  caller: string;
  /** By keys of tables, the one that is used least recently first. */
  readonly tables: Map<string, Kept>;
}

/** @param budget memory of the kept tables of a process, in bytes; 0 keeps none. */
export function createKeptTables(budget: number): KeptTables {
  /** Bytes that statements have read of tables, by keys, the one that is read least recently first. */
  const reads = new Map<string, number>();
  const refuse = (key: string) => void putNewest(reads, key, Number.NEGATIVE_INFINITY, MOST_COUNTED);
  const byProcess = new WeakMap<EngineProcess, Held>();
  let named = 0;

  function heldBy(process: EngineProcess): Held {
    const held = byProcess.get(process) ?? { caller: "", tables: new Map() };
    byProcess.set(process, held);
    return held;
  }

  async function drop(held: Held, keys: readonly string[], conversation: Conversation): Promise<void> {
    const names = keys.flatMap((key) => held.tables.get(key)?.name ?? []);
    for (const key of keys) held.tables.delete(key);
    if (names.length > 0) await conversation.ask({ kind: "drop", names });
  }

  /** Loads a table, and drops others until all fit. */
  async function load(
    held: Held,
    key: string,
    state: string,
    conversation: Conversation,
    read: (load: () => Promise<number>) => Promise<number>,
    table: ScannedTable,
  ): Promise<void> {
    const name = `t${named++}`;
    let bytes = await read(async () => {
      const { body } = await conversation.ask({ kind: "keep", name, table });
      return Number(Buffer.from(body).toString());
    });
    held.tables.set(key, { name, state });
    for (const oldest of [...held.tables.keys()]) {
      if (bytes <= budget) return;
      await drop(held, [oldest], conversation);
      const { body } = await conversation.ask({ kind: "drop", names: [] });
      bytes = Number(Buffer.from(body).toString());
    }
    refuse(key);
  }

  return {
    async enter(process, caller, conversation) {
      const held = heldBy(process);
      if (held.caller !== caller) await drop(held, [...held.tables.keys()], conversation);
      held.caller = caller;
    },
    count(caller, table, bytes) {
      const key = keyOf(caller, table);
      if (budget > 0 && table.version !== undefined && table.search === undefined)
        putNewest(reads, key, (reads.get(key) ?? 0) + bytes, MOST_COUNTED);
    },
    async *bounded(rows) {
      let bytes = 0;
      for await (const piece of rows) {
        bytes += piece.byteLength;
        if (bytes > budget) throw new LanceError("PayloadTooLarge", "the table is too large to be kept");
        yield piece;
      }
    },
    async statesOf({ caller, tables, open, scanned, signal }) {
      return Promise.all(
        open.map(async (table, i) => {
          const { columns, rows } = scanned[i] as ScannedTable;
          const isWhole = columns.every(({ refused }) => refused === undefined);
          const width = columns.reduce((sum, { type }) => sum + widthOf(type), 0);
          const size = (rows ?? Number.POSITIVE_INFINITY) * width;
          // Reading a whole table pays when as much of it has been read in parts.
          const isRead = (reads.get(keyOf(caller, table)) ?? -1) >= size;
          if (table.search !== undefined || !isWhole || size > budget || !isRead) return undefined;
          return tables.stateOf?.(table, signal);
        }),
      );
    },
    async use(process, conversation, { caller, open, scanned }, states, read) {
      const held = heldBy(process);
      const used = new Map<number, string>();
      for (const [i, state] of states.entries()) {
        const table = open[i] as SqlTable;
        const key = keyOf(caller, table);
        if (state === undefined) continue;
        if (held.tables.get(key)?.state !== state) {
          await drop(held, [key], conversation);
          try {
            await load(
              held,
              key,
              state,
              conversation,
              (loads) => read(table, loads),
              scanned[i] as ScannedTable,
            );
          } catch (thrown) {
            if (!conversation.isIdle) throw thrown;
            // The statement may not need the value that cannot be kept.
            refuse(key);
          }
        }
        const kept = held.tables.get(key);
        if (kept === undefined) continue;
        held.tables.delete(key);
        held.tables.set(key, kept);
        used.set(i, kept.name);
      }
      // Loading one of them may have dropped another.
      const names = new Set(Array.from(held.tables.values(), ({ name }) => name));
      return new Map([...used].filter(([, name]) => names.has(name)));
    },
  };
}

/** Number of tables whose reads are counted. */
const MOST_COUNTED = 512;

/** Assumed sizes of a value and of the values of a list, in bytes. */
const [VALUE_BYTES, LIST_BYTES] = [12, 64];

/** Returns about how many bytes a value of a type takes. */
function widthOf(type: SqlType): number {
  switch (type.id) {
    case "ARRAY":
      return type.size * Math.min(widthOf(type.child), 8);
    case "LIST":
    case "MAP":
      return LIST_BYTES;
    case "STRUCT":
      return type.types.reduce((sum, member) => sum + widthOf(member), 0);
    default:
      return VALUE_BYTES;
  }
}

function keyOf(caller: string, { database, path, version, branch }: SqlTable): string {
  return JSON.stringify([caller, database, path, String(version), branch]);
}
