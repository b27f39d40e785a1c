import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";

/** The checkout to which this benchmark belongs. */
export const HERE = join(import.meta.dirname, "..", "..");

/** A revision of the project that can be started. */
export interface Checkout {
  /** The abbreviated commit. */
  readonly commit: string;
  readonly folder: string;
}

/**
 * Returns a checkout of a revision with the dependencies of its lock, in `.cache/against`. The first use of a commit installs it.
 *
 * @throws Error if the repository lacks the revision, or if its dependencies cannot be installed
 */
export function checkoutOf(revision: string): Checkout {
  const commit = git(HERE, "rev-parse", "--verify", "--short=8", `${revision}^{commit}`);
  const folder = join(HERE, ".cache", "against", commit);
  if (!existsSync(folder)) install(commit, folder);
  return { commit, folder };
}

/** Installs beside the folder first, so that it exists whole or not at all. */
function install(commit: string, folder: string): void {
  const draft = `${folder}.${process.pid}`;
  mkdirSync(dirname(folder), { recursive: true });
  console.error(`Installing ${commit} (once)...`);
  try {
    git(HERE, "clone", "--quiet", "--shared", "--no-checkout", HERE, draft);
    git(draft, "checkout", "--quiet", "--detach", commit);
    const args = ["ci", "--omit=dev", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
    execFileSync("npm", args, { cwd: draft, stdio: ["ignore", 2, 2] });
    renameSync(draft, folder);
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
}

function git(folder: string, ...args: readonly string[]): string {
  return execFileSync("git", ["-C", folder, ...args], { encoding: "utf8" }).trim();
}
