// Runs the sessions of the real clients, and the contract through chains of gateways. When all pass, their figures
// become test/clients/results.json, from which the README's table is made. With arguments it runs only the test files
// that they name, and leaves the figures as they are.
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { RESULTS_FOLDER, type SessionResult } from "../test/clients/support/session.ts";
import { makeEnvironments } from "./environments.ts";

const root = join(import.meta.dirname, "..");
const chosen = process.argv.slice(2);
const vitest = join(root, "node_modules", "vitest", "vitest.mjs");
// Three files at once: most of their time they wait for clients, builds and clocks.
const projects = ["--project", "clients", "--project", "browser", "--maxWorkers", "3"];

// Before the files, which share these environments and would otherwise install them at the same time.
await makeEnvironments("clients", "moto", "catalogs");

rmSync(RESULTS_FOLDER, { recursive: true, force: true });
const { status } = spawnSync(process.execPath, [...process.execArgv, vitest, "run", ...projects, ...chosen], {
  cwd: root,
  stdio: "inherit",
});
if (status === 0 && chosen.length === 0)
  writeFileSync(join(root, "test", "clients", "results.json"), figures());
process.exit(status ?? 1);

function figures(): string {
  const names = existsSync(RESULTS_FOLDER) ? readdirSync(RESULTS_FOLDER) : [];
  const results = names.map(
    (name) => JSON.parse(readFileSync(join(RESULTS_FOLDER, name), "utf8")) as SessionResult,
  );
  const sorted = results
    .map(({ client, version, calls }) => ({ client, version, calls }))
    .sort((a, b) => (a.client < b.client ? -1 : 1));
  return `${JSON.stringify(sorted, null, 2)}\n`;
}
