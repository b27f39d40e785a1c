import { readFileSync } from "node:fs";

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
  const text = `${user} needs the package ${name}, which is not installed; install it with npm install ${wanted(name)}`;
  return new Error(text, { cause: error });
}

/** The name of a package, with its version if this package works with a single one. */
function wanted(name: string): string {
  // package.json is two folders above this file, in the sources and in the built package.
  const text = readFileSync(new URL("../../package.json", import.meta.url), "utf8");
  const { optionalDependencies = {} } = JSON.parse(text) as {
    optionalDependencies?: Readonly<Record<string, string>>;
  };
  const version = optionalDependencies[name];
  return version === undefined ? name : `${name}@${version}`;
}
