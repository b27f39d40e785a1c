// Runs a program of this project with a Node that is new enough, after installing what it needs of the lock file.
// Plain JavaScript for Node 20, with nothing but its own modules: it runs before anything is installed.
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { constants } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { allocatorVariables } from "../bin/allocator.js";
import { CALLER_GONE, followCaller } from "../bin/follow-caller.js";
import { isNodeNewEnough, OLDEST_NODE } from "../bin/node-version.js";
import { installFor } from "./install.mjs";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");

const children = new Set();
const signalAll = (signal) => children.forEach((child) => void child.kill(signal));
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => signalAll(signal));
if (process.env.npm_lifecycle_event !== undefined) followCaller(() => signalAll(CALLER_GONE));

function fail(message) {
  process.stderr.write(`${message}\n`);
  process.exit(1);
}

/** Runs a command, which gets all signals; resolves to its exit code in the form of a shell. */
function run(command, args, stdio, cwd, variables = {}) {
  const child = spawn(command, args, { cwd, stdio, env: { ...process.env, ...variables } });
  children.add(child);
  return new Promise((resolve) => {
    child.on("error", (error) => fail(`Cannot start ${command}: ${error.message}`));
    child.on("exit", (code, signal) => {
      children.delete(child);
      resolve(code ?? 128 + constants.signals[signal]);
    });
  });
}

function suitableNode() {
  if (isNodeNewEnough()) return process.execPath;
  const bundled = join(root, "node_modules", "node", "bin", "node");
  if (existsSync(bundled)) return bundled;
  return fail(`Node ${OLDEST_NODE} or newer is needed; this is ${process.versions.node}.`);
}

await installFor(process.argv[2], run).catch(({ message }) =>
  fail(`The dependencies could not be installed: ${message}; see the messages above.`),
);

// The cache keeps stripped and compiled code, because a test run starts more than a hundred processes.
process.env.NODE_COMPILE_CACHE ??= join(root, "node_modules", ".cache", "compiled");
// Node's test runner does not load modules given with --import.
const follow = ["--require", join(root, "scripts", "follow-caller.mjs")];
const args = ["--disable-warning=ExperimentalWarning", ...follow, ...process.argv.slice(2)];
const allocator = allocatorVariables(process.argv.slice(3));
process.exit(await run(suitableNode(), args, "inherit", process.cwd(), allocator));
