// The steps of the image, each in a folder that the image takes over. The Dockerfile runs them, and so does
// scripts/try-image.sh.
//   node deploy/image.mjs dependencies FOLDER      installs what the program needs; FOLDER has package.json and the lock
//   node deploy/image.mjs program PACKED FOLDER    unpacks the package that is in the folder PACKED
import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { reduceDependencies, removeUnusedFolders } from "../scripts/reduced-dependencies.mjs";

const STEPS = { dependencies, program };

/** The versions come from the lock of the project, those of the libraries for object stores and tracing included. */
function dependencies(folder) {
  const { peerDependencies } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  reduceDependencies(folder, Object.keys(peerDependencies));
  execFileSync("npm", ["ci", "--omit=dev", "--ignore-scripts"], { cwd: folder, stdio: "inherit" });
  removeUnusedFolders(folder);
}

function program(packed, folder) {
  const archive = readdirSync(packed).find((name) => name.endsWith(".tgz"));
  mkdirSync(folder, { recursive: true });
  execFileSync("tar", ["-xzf", join(packed, archive), "-C", folder, "--strip-components=1"]);
}

const [step, ...folders] = process.argv.slice(2);
STEPS[step](...folders);
