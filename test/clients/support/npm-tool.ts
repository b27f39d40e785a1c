import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "./tools.ts";

/**
 * A program from a package of the registry, which is installed the first time into a folder of its own.
 *
 * @param binary the program below `node_modules`.
 */
export function npmTool(name: string, version: string, binary: string): string {
  const folder = join(ROOT, ".cache", "npm", `${name}-${version}`);
  const path = join(folder, "node_modules", binary);
  if (existsSync(path)) return path;
  mkdirSync(folder, { recursive: true });
  const args = [
    "install",
    "--prefix",
    folder,
    "--no-audit",
    "--no-fund",
    "--loglevel=error",
    `${name}@${version}`,
  ];
  execFileSync("npm", args, { stdio: "inherit" });
  return path;
}
