// Serves from the sources, as `lance-gateway` does, and builds the console beside the server where it is missing or older
// than its sources.
import { spawn } from "node:child_process";
import { readdirSync, rmSync, statSync } from "node:fs";
import { setPriority } from "node:os";
import { join } from "node:path";

const root = join(import.meta.dirname, "..");
const built = join(root, "dist", "console");

/** Folders and files of which the console is made. */
const SOURCES = [
  "src/console",
  "src/client",
  "src/gen",
  "src/namespace",
  "src/runtime",
  "src/transcode",
  "package-lock.json",
];

/** Priority of a build, which must not take time from the server. */
const LOWEST_PRIORITY = 19;

function newest(path: string): number {
  const { mtimeMs } = statSync(path);
  if (!statSync(path).isDirectory()) return mtimeMs;
  const inside = readdirSync(path, { recursive: true, encoding: "utf8" });
  return Math.max(...inside.map((name) => statSync(join(path, name)).mtimeMs));
}

function isFresh(): boolean {
  const page = statSync(join(built, "index.html"), { throwIfNoEntry: false });
  return page !== undefined && SOURCES.every((path) => newest(join(root, path)) <= page.mtimeMs);
}

if (!process.argv.includes("--no-console") && !isFresh()) {
  rmSync(built, { recursive: true, force: true });
  const builder = spawn(process.execPath, [...process.execArgv, join(root, "scripts", "build-console.ts")], {
    stdio: ["ignore", "ignore", "inherit"],
  });
  if (builder.pid !== undefined) setPriority(builder.pid, LOWEST_PRIORITY);
  builder.unref();
  process.on("exit", () => builder.kill());
}

await import("../src/cli/main.ts");
