import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { SessionResult } from "../../test/clients/support/session.ts";
import { markdownTable } from "./markdown.ts";

const results = join(import.meta.dirname, "..", "..", "test", "clients", "results.json");

/** The clients whose sessions `npm run test:clients` runs, with the figures of its last whole run. */
export function clientTable(): string {
  const sessions = JSON.parse(readFileSync(results, "utf8")) as readonly SessionResult[];
  const rows = sessions.map(({ client, version, calls }) => [client, version, String(calls)]);
  return markdownTable(["Client", "Version", "Calls checked"], rows);
}
