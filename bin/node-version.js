// Plain JavaScript for Node 16, which has to be able to say that it is too old.
import { readFileSync } from "node:fs";

const { engines } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));

/** The oldest Node that runs this project, as in `22.19.0`. */
export const OLDEST_NODE = engines.node.replace(/^>=/, "");

/** Whether this Node is new enough. */
export function isNodeNewEnough() {
  const [major, minor] = process.versions.node.split(".").map(Number);
  const [oldestMajor, oldestMinor] = OLDEST_NODE.split(".").map(Number);
  return major > oldestMajor || (major === oldestMajor && minor >= oldestMinor);
}

/** The line for people who run the package with an older Node. */
export function explainOldNode() {
  const why = "under an older one, npm leaves out the engine, so install lance-gateway with the newer one";
  return `lance-gateway: Node ${OLDEST_NODE} or newer is needed; this is ${process.versions.node} (${why})\n`;
}
