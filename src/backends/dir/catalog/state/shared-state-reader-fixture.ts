// The program of a thread that checks versions of a state: every row must name the version.
import { parentPort } from "node:worker_threads";
import { openState, type SharedState } from "./state.ts";

/** How often each version is read. */
const LOOKS = 3;

interface Version {
  readonly version: number;
  readonly size: number;
  readonly content: SharedState;
}

/** Returns what is wrong; undefined if nothing is. */
function faultOf({ version, size, content }: Version): string | undefined {
  const state = openState(content);
  for (let look = 0; look < LOOKS; look++) {
    const names = state.children("n", "table", "", size + 1);
    if (names.length !== size || state.size !== size) return `${names.length} of ${size} rows`;
    for (const name of names) {
      const row = state.get(`n$${name}`);
      if (row?.properties["version"] !== String(version)) return `${name} is ${JSON.stringify(row)}`;
      if (state.ownerOf(`${version}/${name}`) !== `n$${name}`) return `${name} has not its location`;
    }
    if ([...state.locationsInside(String(version))].length !== size) return "locations are missing";
    if (state.hasChildren("n$t1")) return "a table has children";
  }
  return undefined;
}

parentPort?.on("message", (message: Version) => {
  parentPort?.postMessage({ version: message.version, fault: faultOf(message) });
});
