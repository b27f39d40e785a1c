// A short session of the client, in whatever runs it: a page, Bun, Deno or Node.
import type { Namespace } from "../../../src/client/exports.ts";

/** Works through one connection and tells what it saw. */
export async function session(ns: Namespace, name: string): Promise<string> {
  await ns.createNamespace({ id: [name] });
  const rows = [
    { id: 1, word: "one", vector: [1, 0] },
    { id: 2, word: "two", vector: [0, 1] },
  ];
  await ns.createTable("t", rows, { namespacePath: [name] });
  await ns.insertIntoTable({ id: [name, "t"] }, rows);
  const seen: string[] = [];
  for await (const table of ns.listTables({ id: [name], limit: 1 })) seen.push(table);
  seen.push(String((await ns.countTableRows({ id: [name, "t"], predicate: "id > 1" })).count));
  let read = 0;
  for await (const batch of ns.queryTable({ id: [name, "t"] })) read += batch.numRows;
  const [nearest] = await ns.queryTable({ id: [name, "t"], vector: [0, 1], k: 1 }).toArray();
  seen.push(String(read), String(nearest?.["word"]));
  const error = await ns.describeTable({ id: [name, "missing"] }).catch((thrown) => thrown);
  seen.push(error.kind, String(error.status));
  return seen.join(" ");
}

/** Expected output of a session. */
export const EXPECTED = "t 2 4 two TableNotFound 404";
