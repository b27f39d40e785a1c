// Refuses to install the package under a Node that is too old: npm would leave the engine out without a word.
// Plain JavaScript for Node 16, which has to be able to say that it is too old.
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { explainOldNode, isNodeNewEnough } from "./node-version.js";

// A clone installs a Node of its own.
const isClone = existsSync(fileURLToPath(new URL("../scripts/run.mjs", import.meta.url)));

if (!isClone && !isNodeNewEnough()) {
  process.stderr.write(explainOldNode());
  process.exitCode = 1;
}
