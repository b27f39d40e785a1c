import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";

const checkout = join(import.meta.dirname, "..");

/**
 * A program that only some checks need: `tools/` has a folder for it, with the package that brings it and the lock of
 * all that this package needs. It is installed the first time, and again whenever the lock changes.
 *
 * @param binary the program's path below `node_modules`.
 */
export function npmTool(name: string, binary: string): string {
  const source = join(checkout, "tools", name);
  const lock = readFileSync(join(source, "package-lock.json"));
  const digest = createHash("sha256").update(lock).digest("hex").slice(0, 16);
  const folder = join(checkout, ".cache", "npm", `${name}-${digest}`);
  if (!existsSync(folder)) install(source, folder);
  return join(folder, "node_modules", binary);
}

/** Installs beside the folder first, so that it is there whole or not at all, however many install it at once. */
function install(source: string, folder: string): void {
  const draft = `${folder}.${process.pid}`;
  mkdirSync(draft, { recursive: true });
  try {
    cpSync(source, draft, { recursive: true });
    const args = ["ci", "--no-audit", "--no-fund", "--loglevel=error"];
    execFileSync("npm", args, { cwd: draft, stdio: "inherit" });
    renameSync(draft, folder);
  } catch (error) {
    rmSync(draft, { recursive: true, force: true });
    if (!existsSync(folder)) throw error;
  }
}
