import { isDeepStrictEqual } from "node:util";
import { rowsOf } from "../../test/support/arrow.ts";
import type { LanceClient } from "../../test/support/client.ts";
import type { Random } from "../../test/support/random.ts";
import type { Ledger } from "./ledger.ts";
import { type Row, streamOf, TABLE, textOf, vectorOf, wordOf } from "./rows.ts";

/** An answer that contradicts what the client knows. */
export class WrongAnswer extends Error {}

/** A client at work. */
export interface Worker {
  readonly client: LanceClient;
  readonly own: Ledger;
  readonly random: Random;
  /** The newest version of the table that any client has seen. */
  readonly newest: { version: bigint };
}

/** A kind of call. */
export interface Kind {
  readonly name: string;
  readonly isWrite: boolean;
  /** Makes a call and checks its answer. @throws WrongAnswer, and what the client throws for a call that failed */
  run(worker: Worker): Promise<void>;
}

/** The namespace of a client's small tables. */
export const namespaceOf = ({ owner }: Ledger): string[] => [`client${owner}`];

const READS: Readonly<Record<string, Kind["run"]>> = {
  async nearest({ client, own, random }) {
    const row = own.pick(random);
    const found = await query(client, { vector: { singleVector: vectorOf(row) }, k: 10n });
    check(found.length, 10);
    check(found[0], contentOf(row));
  },
  async filter({ client, own, random }) {
    const row = own.pick(random);
    check(await query(client, { filter: `id = ${row.id}` }), [contentOf(row)]);
  },
  async deleted({ client, own, random }) {
    const id = own.deleted[random.below(own.deleted.length + 1)] ?? NO_ROW;
    check(await query(client, { filter: `id = ${id}` }), []);
  },
  async words({ client, own, random }) {
    const row = own.pick(random);
    const stringQuery = { query: wordOf(row), columns: ["text"] };
    check(await query(client, { fullTextQuery: { stringQuery } }), [contentOf(row)]);
  },
  async count({ client, own }) {
    const { count } = await client.countTableRows({ id: TABLE, predicate: `owner = ${own.owner}` });
    if (own.unknown.size === 0) check(count, BigInt(own.rows.size));
  },
  async version({ client, newest }) {
    const before = newest.version;
    const { version } = await client.describeTableVersion({ id: TABLE });
    const seen = version?.version ?? 0n;
    if (seen < before) throw new WrongAnswer(`version ${seen} after ${before}`);
    if (seen > newest.version) newest.version = seen;
  },
  async list({ client, own }) {
    const { tables } = await client.listTables({ id: namespaceOf(own) });
    if (!own.tablesUnknown) check(tables.toSorted(), [...own.tables].toSorted());
  },
};

const WRITES: Readonly<Record<string, Kind["run"]>> = {
  insert: ({ client, own, random }) => {
    const rows = own.newRows(1 + random.below(3));
    return write(own, rows, async () => void (await client.insertIntoTable({ id: TABLE }, streamOf(rows))));
  },
  merge: ({ client, own, random }) => {
    const rows = [updated(own.pick(random)), ...own.newRows(1)];
    return write(own, rows, async () => {
      const options = { on: ["id"], whenMatchedUpdateAll: true, whenNotMatchedInsertAll: true };
      const answer = await client.mergeInsertIntoTable({ id: TABLE, ...options }, streamOf(rows));
      check([answer.numUpdatedRows, answer.numInsertedRows], [1n, 1n]);
    });
  },
  update: ({ client, own, random }) => {
    const row = updated(own.pick(random));
    return write(own, [row], async () => {
      const updates = [{ column: "text", expression: `'${textOf(row)}'` }];
      const answer = await client.updateTable({ id: TABLE, predicate: `id = ${row.id}`, updates });
      check(answer.updatedRows, 1n);
    });
  },
  async delete({ client, own, random }) {
    const ids = own.pickDoomed(random).map(({ id }) => id);
    for (const id of ids) {
      own.rows.delete(id);
      own.unknown.add(id);
    }
    const predicate = ids.map((id) => `id = ${id}`).join(" OR ");
    await client.deleteFromTable({ id: TABLE, predicate });
    for (const id of ids) {
      own.unknown.delete(id);
      own.deleted.push(id);
    }
  },
  async table({ client, own, random }) {
    const [oldest] = own.tables;
    const name = `table${random.below(2 ** 31)}`;
    own.tablesUnknown = true;
    if (oldest !== undefined && own.tables.size > MOST_TABLES) {
      await client.dropTable({ id: [...namespaceOf(own), oldest] });
      own.tables.delete(oldest);
    } else {
      await client.createTable({ id: [...namespaceOf(own), name] }, streamOf([own.pick(random)]));
      own.tables.add(name);
    }
    own.tablesUnknown = false;
  },
};

/** An id that no row ever has. */
const NO_ROW = -1;

/** Small tables of a client before it drops the oldest. */
const MOST_TABLES = 3;

const kindsOf = (runs: typeof READS, isWrite: boolean): readonly Kind[] =>
  Object.entries(runs).map(([name, run]) => ({ name, isWrite, run }));

const KINDS = [kindsOf(READS, false), kindsOf(WRITES, true)] as const;

/** The names of all kinds. */
export const KIND_NAMES = KINDS.flat().map(({ name }) => name);

/** Draws the next call: four reads for a write. */
export function drawKind(random: Random): Kind {
  return random.pick(KINDS[random.below(5) === 0 ? 1 : 0]);
}

/** Writes rows, which are in doubt until the answer comes. */
async function write(own: Ledger, rows: readonly Row[], send: () => Promise<void>): Promise<void> {
  for (const { id } of rows) {
    own.rows.delete(id);
    own.unknown.add(id);
  }
  await send();
  for (const row of rows) {
    own.unknown.delete(row.id);
    own.rows.set(row.id, row);
  }
}

const updated = (row: Row): Row => ({ ...row, revision: row.revision + 1 });

const contentOf = (row: Row) => ({ id: row.id, text: textOf(row) });

async function query(client: LanceClient, request: object): Promise<{ id: unknown; text: unknown }[]> {
  const columns = { columnNames: ["id", "text"] };
  const { bytes } = await client.queryTable({ id: TABLE, columns, ...request });
  return rowsOf(bytes).map(({ id, text }) => ({ id, text }));
}

function check(found: unknown, expected: unknown): void {
  if (isDeepStrictEqual(found, expected)) return;
  throw new WrongAnswer(`${shown(found)} instead of ${shown(expected)}`);
}

function shown(value: unknown): string {
  return JSON.stringify(value, (_, item) => (typeof item === "bigint" ? Number(item) : item)) ?? "nothing";
}
