// Reads from a server, with a time limit and an error that is told apart: node examples/server.ts URI
import { connect, isNotFound } from "lance-gateway/client";

await using ns = await connect("rest", { uri: process.argv[2] ?? "http://localhost:2333" });

const { tables } = await ns.listTables({ limit: 10 }, { timeoutMs: 5_000 });
process.stdout.write(`${tables.length} tables\n`);
try {
  await ns.describeTable({ id: ["no", "such"] });
} catch (error) {
  if (!isNotFound(error)) throw error;
  process.stdout.write(`${error.kind} ${error.status}\n`);
}
