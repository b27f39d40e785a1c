// The steps of the image, each in a folder that the image takes over. The Dockerfile runs them, and so does
// deploy/check.ts.
//   node deploy/image.mjs dependencies FOLDER      installs what the program needs; FOLDER has package.json and the lock
//   node deploy/image.mjs program PACKED FOLDER    unpacks the package that is in the folder PACKED
import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const STEPS = { dependencies, program };

/** Libraries of embedding functions, which the engine's package offers to other programs; they have 500 MB. */
const UNUSED = ["@huggingface/transformers", "openai"];

/** The versions come from the lock of the project, those of the libraries for object stores and tracing included. */
function dependencies(folder) {
  rewrite(join(folder, "package.json"), (manifest) => {
    const { devDependencies, peerDependencies } = manifest;
    for (const name of Object.keys(peerDependencies)) manifest.dependencies[name] = devDependencies[name];
    for (const name of ["devDependencies", "peerDependencies", "peerDependenciesMeta", "scripts"])
      delete manifest[name];
  });
  rewrite(join(folder, "package-lock.json"), ({ packages }) => {
    const { optionalDependencies } = packages["node_modules/@lancedb/lancedb"];
    for (const name of UNUSED) delete optionalDependencies[name];
  });
  execFileSync("npm", ["ci", "--omit=dev", "--ignore-scripts"], { cwd: folder, stdio: "inherit" });
}

function rewrite(file, change) {
  const content = JSON.parse(readFileSync(file, "utf8"));
  change(content);
  writeFileSync(file, JSON.stringify(content));
}

function program(packed, folder) {
  const archive = readdirSync(packed).find((name) => name.endsWith(".tgz"));
  mkdirSync(folder, { recursive: true });
  execFileSync("tar", ["-xzf", join(packed, archive), "-C", folder, "--strip-components=1"]);
}

const [step, ...folders] = process.argv.slice(2);
STEPS[step](...folders);
