// Makes a table in a directory, searches it and follows a listing: node examples/tables.ts DIRECTORY
import { connect, isAlreadyExists } from "lance-gateway/client";

await using ns = await connect("dir", { root: process.argv[2] ?? "./lance-data" });

await ns.createNamespace({ id: ["team"], mode: "exist_ok" });
try {
  const rows = [
    { id: 1, name: "Ada", vector: [1, 0] },
    { id: 2, name: "Grace", vector: [0, 1] },
  ];
  await ns.createTable("people", rows, { namespacePath: ["team"] });
} catch (error) {
  if (!isAlreadyExists(error)) throw error;
}

for await (const table of ns.listTables({ id: ["team"] })) process.stdout.write(`table ${table}\n`);

const nearest = ns.queryTable({ id: ["team", "people"], vector: [0.9, 0.1], k: 1, columns: ["name"] });
for (const row of await nearest.toArray()) process.stdout.write(`nearest ${row["name"]}\n`);
