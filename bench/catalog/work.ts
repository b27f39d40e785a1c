import { randomInt } from "node:crypto";
import { send } from "../data/client.ts";
import { runHttpLoad } from "../support/http-load.ts";

/** Number of requests that a load alternates between, so that it does not repeat a single answer. */
const PATHS = 200;

const READ_CONNECTIONS = 16;

/** A kind of load on a server whose catalog has the given number of tables; returns requests per second. */
export type Work = (port: number, tables: number, seconds: number) => Promise<number>;

/** Returns the name of a table of the prepared catalogs. */
export function tableName(number: number): string {
  return `t${String(number).padStart(7, "0")}`;
}

/** Describes random tables of the catalog. */
export const describe: Work = (port, tables, seconds) =>
  readLoad(port, seconds, "POST", () => `/v1/table/bench$${tableName(randomInt(tables))}/describe`);

/** Checks that tables exist. */
export const exists: Work = (port, tables, seconds) =>
  readLoad(port, seconds, "POST", () => `/v1/table/bench$${tableName(randomInt(tables))}/exists`);

/** Lists pages of 100 tables at random places of the namespace. */
export const list: Work = (port, tables, seconds) =>
  readLoad(port, seconds, "GET", () => {
    const token = tableName(randomInt(Math.max(1, tables - 100)));
    return `/v1/namespace/bench/table/list?limit=100&page_token=${token}`;
  });

/** Declares new tables over several connections. */
export const declare =
  (connections: number): Work =>
  async (port, _tables, seconds) => {
    const started = performance.now();
    const counts = await Promise.all(
      Array.from({ length: connections }, async () => {
        let count = 0;
        for (; count === 0 || performance.now() - started < seconds * 1000; count += 1)
          await declareOne(port);
        return count;
      }),
    );
    return (counts.reduce((sum, count) => sum + count, 0) * 1000) / (performance.now() - started);
  };

let declared = 0;

/** Declares a table with a new name. */
export async function declareOne(port: number): Promise<void> {
  declared += 1;
  await send(port, `table/bench$new${declared}/declare`, {});
}

function readLoad(
  port: number,
  seconds: number,
  method: "GET" | "POST",
  path: () => string,
): Promise<number> {
  return runHttpLoad({
    port,
    method,
    path: Array.from({ length: PATHS }, path),
    ...(method === "POST" && { body: "{}" }),
    connections: READ_CONNECTIONS,
    seconds,
  });
}
