#!/usr/bin/env node
// The program of the package. In a clone, which has no compiled code, it runs the sources with the clone's own Node.
// Plain JavaScript for Node 16, which has to be able to say that it is too old.
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { allocatorVariables, restartWith } from "./allocator.js";
import { CALLER_GONE, followCaller } from "./follow-caller.js";
import { explainOldNode, isNodeNewEnough } from "./node-version.js";

const fileOf = (path) => fileURLToPath(new URL(path, import.meta.url));
const fromSources = fileOf("../scripts/run.mjs");

if (!existsSync(fileOf("../dist/cli/main.js")) && existsSync(fromSources)) {
  process.argv.splice(2, 0, fileOf("../src/cli/main.ts"));
  await import("../scripts/run.mjs");
} else if (isNodeNewEnough()) {
  restartWith(allocatorVariables(process.argv.slice(2)));
  // npm and its shell end by a signal without passing it on, and npx is both.
  if (process.env.npm_lifecycle_event !== undefined) {
    followCaller(() => process.kill(process.pid, CALLER_GONE));
  }
  await import("../dist/cli/main.js");
} else {
  process.stderr.write(explainOldNode());
  process.exitCode = 1;
}
