#!/usr/bin/env node
// The program of the package. Plain JavaScript for Node 16, which has to be able to say that it is too old.
import { CALLER_GONE, followCaller } from "./follow-caller.js";
import { isNodeNewEnough, OLDEST_NODE } from "./node-version.js";

if (isNodeNewEnough()) {
  // npm and its shell end by a signal without passing it on, and npx is both.
  if (process.env.npm_lifecycle_event !== undefined) {
    followCaller(() => process.kill(process.pid, CALLER_GONE));
  }
  await import("../dist/cli/main.js");
} else {
  process.stderr.write(
    `lance-gateway: Node ${OLDEST_NODE} or newer is needed; this is ${process.versions.node}\n`,
  );
  process.exitCode = 1;
}
