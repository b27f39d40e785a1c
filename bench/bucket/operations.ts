import { randomInt } from "node:crypto";
import { forEachOf } from "../../src/backends/dir/concurrency/for-each.ts";
import { people, personStream } from "../../test/support/arrow.ts";
import { tableName } from "../catalog/work.ts";
import { send } from "../data/client.ts";

/** Calls an operation once, over one of several connections. */
export type Operation = (port: number, tables: number, connection: number) => Promise<unknown>;

/** Number of tables that are created at a time; more would make writers of other catalogs give up. */
const CREATED_AT_A_TIME = 4;

const ROWS = Buffer.from(personStream(people(100)));

/** Each connection inserts into a table of its own, so that writers of one table do not wait for each other. */
const insertTarget = (connection: number) => `bench$grows${connection}`;

let drawn = 0;
const newName = () => `bench$new${process.pid}x${++drawn}`;

const anyTable = (tables: number) => `table/bench$${tableName(randomInt(tables))}`;

/** The measured operations by their names. */
export const OPERATIONS: Readonly<Record<string, Operation>> = {
  describe: (port, tables) => send(port, `${anyTable(tables)}/describe`, {}),
  exists: (port, tables) => send(port, `${anyTable(tables)}/exists`, {}),
  list: (port) => send(port, "namespace/bench/table/list?limit=100"),
  count: (port) => send(port, "table/bench$rows/count_rows", {}),
  query: (port) => send(port, "table/bench$rows/query", { filter: "id = 7", k: 10, vector: {} }),
  declare: (port) => send(port, `table/${newName()}/declare`, {}),
  create: (port) => send(port, `table/${newName()}/create`, ROWS),
  insert: (port, _tables, connection) => send(port, `table/${insertTarget(connection)}/insert`, ROWS),
  "create namespace": (port) => send(port, `namespace/${newName()}/create`, {}),
};

/** Creates the tables that the operations use, besides those of the prepared catalog. */
export async function prepareTables(port: number, connections: number): Promise<void> {
  const names = ["bench$rows", ...Array.from({ length: connections }, (_, each) => insertTarget(each))];
  await forEachOf(names, CREATED_AT_A_TIME, (name) => send(port, `table/${name}/create`, ROWS));
}
