import { registerHooks } from "node:module";

const OWN = new URL("program-files.ts", import.meta.url).href;
/** Starts workers from the sources, of which tests give them modules. */
const WORKERS = new URL("../../src/cli/workers/worker-thread.ts", import.meta.url).href;

// Has the code under test start the programs of the package, such as the SQL engine's, from the joined code. A module of its own runs once in
// a process, and the setup before each file.
registerHooks({
  resolve(specifier, context, next) {
    const { parentURL = "" } = context;
    const keeps = parentURL === OWN || parentURL === WORKERS;
    if (keeps || !specifier.endsWith("/runtime/package-files.ts")) return next(specifier, context);
    return { url: OWN, shortCircuit: true };
  },
});
