import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { send } from "../data/client.ts";
import { startGateway } from "../support/process.ts";
import { createLocal } from "./local.ts";
import { createDraw, createTable, FIRST_ROWS, query, rowsOf, vectorOf, wordOf } from "./work.ts";

/** Median times of a search in milliseconds: before the adds, right after them, and when the table was looked after. */
export interface AfterAdds {
  readonly before: number;
  readonly atOnce: number;
  readonly later: number;
}

/** A kind of search, and the number of adds of one row before it. */
export interface Search {
  readonly name: string;
  readonly adds: number;
  readonly kind: "nearest" | "words";
}

export const SEARCHES: readonly Search[] = [
  { name: "vector search after 300 adds", adds: 300, kind: "nearest" },
  { name: "full text after 60 adds", adds: 60, kind: "words" },
];

const TIMES = 100;

/** Time in which the gateway looks after a table without writes, in milliseconds; the local library is asked to. */
const QUIET_MS = 8_000;

/** Adds rows through a gateway one by one, and searches; nobody asks for anything else. */
export async function throughGateway({ adds, kind }: Search): Promise<AfterAdds> {
  return inDirectory(async (root) => {
    const draw = createDraw(3);
    const gateway = await startGateway("--root", root);
    try {
      await createTable(gateway.port);
      const search = () =>
        query(
          gateway.port,
          kind === "nearest"
            ? { k: 10, vector: { single_vector: vectorOf(draw) } }
            : { k: 10, vector: {}, full_text_query: wordsOf(wordOf(draw)) },
        );
      const before = await medianOf(search);
      for (let at = 0; at < adds; at++)
        await send(gateway.port, "table/soak/insert", rowsOf([FIRST_ROWS + at], draw));
      const atOnce = await medianOf(search);
      await sleep(QUIET_MS);
      return { before, atOnce, later: await medianOf(search) };
    } finally {
      await gateway.stop();
    }
  });
}

/** Adds the rows with the local library, searches, optimizes and searches again. */
export async function withLibrary({ adds, kind }: Search): Promise<AfterAdds> {
  return inDirectory(async (directory) => {
    const draw = createDraw(3);
    const table = await createLocal(directory, draw);
    try {
      const search = () => (kind === "nearest" ? table.nearest(vectorOf(draw)) : table.words(wordOf(draw)));
      const before = await medianOf(search);
      for (let at = 0; at < adds; at++) await table.add(FIRST_ROWS + at);
      const atOnce = await medianOf(search);
      await table.optimize();
      return { before, atOnce, later: await medianOf(search) };
    } finally {
      table.close();
    }
  });
}

const wordsOf = (word: string) => ({ string_query: { query: word, columns: ["text"] } });

/** Returns the median duration of calls, in milliseconds, after some whose time does not count. */
async function medianOf(call: () => Promise<unknown>): Promise<number> {
  const times: number[] = [];
  for (let at = -TIMES / 10; at < TIMES; at++) {
    const started = performance.now();
    await call();
    if (at >= 0) times.push(performance.now() - started);
  }
  return times.sort((a, b) => a - b)[TIMES / 2] as number;
}

async function inDirectory<T>(work: (directory: string) => Promise<T>): Promise<T> {
  const directory = await mkdtemp(join(tmpdir(), "lance-gateway-bench-"));
  try {
    return await work(directory);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}
