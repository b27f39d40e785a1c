// Makes Python environments at the same time: mostly they wait for the registry of packages. As a program, those that its arguments name.
import { once } from "node:events";
import { isMainThread, Worker, workerData } from "node:worker_threads";
import { pythonInterpreter } from "./python-environment.ts";

/**
 * Makes environments of `scripts/python-environment.ts`, or leaves them as they are.
 *
 * @throws Error of the first one that cannot be made
 */
export async function makeEnvironments(...names: readonly string[]): Promise<void> {
  const module = new URL(import.meta.url);
  const threads = names.map((environment) => new Worker(module, { workerData: { environment } }));
  await Promise.all(threads.map((thread) => once(thread, "exit")));
}

if (!isMainThread) pythonInterpreter(workerData.environment);
else if (process.argv[1] === import.meta.filename) await makeEnvironments(...process.argv.slice(2));
