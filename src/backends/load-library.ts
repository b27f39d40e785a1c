import { existsSync, readFileSync } from "node:fs";
import { packageFile } from "../runtime/package-files.ts";

const NOT_FOUND: ReadonlySet<unknown> = new Set(["ERR_MODULE_NOT_FOUND", "MODULE_NOT_FOUND"]);

/**
 * Loads a library that is installed only where it is used.
 *
 * @param user the option, address or part that needs the library, for the error.
 * @throws Error with one clear line for a missing package.
 */
export async function loadLibrary<T>(user: string, name: string, load: () => Promise<T>): Promise<T> {
  try {
    return await load();
  } catch (error) {
    throw explainMissing(user, name, error);
  }
}

/** Returns an error that says how to install the package, if that is missing, and any other error as it is. */
export function explainMissing(user: string, name: string, error: unknown): unknown {
  const isMissing = NOT_FOUND.has((error as NodeJS.ErrnoException).code) && String(error).includes(name);
  if (!isMissing) return error;
  const text = `${user} needs the package ${name}, which is not installed; install it with ${installing(name)}`;
  return new Error(text, { cause: error });
}

/** The command that installs a package, with its version if this package works with a single one. */
function installing(name: string): string {
  const text = readFileSync(packageFile("package.json"), "utf8");
  const { optionalDependencies = {}, devDependencies = {} } = JSON.parse(text) as Partial<
    Record<string, Readonly<Record<string, string>>>
  >;
  // The lock of a clone has it, but its first start installs only what most gateways need.
  if (devDependencies[name] !== undefined && existsSync(packageFile("scripts/run.mjs"))) return "npm ci";
  const version = optionalDependencies[name];
  return `npm install ${version === undefined ? name : `${name}@${version}`}`;
}
