// The steps of the image, each in a folder that the image takes over. The Dockerfile runs them, and so does
// scripts/try-image.sh.
//   node deploy/image.mjs dependencies FOLDER ARCH installs what the program needs; FOLDER has package.json and the lock; ARCH
//                                                  is amd64 or arm64, by default that of this machine
//   node deploy/image.mjs program PACKED FOLDER    unpacks the package that is in the folder PACKED
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { reduceDependencies, removeUnusedFiles } from "../scripts/reduced-dependencies.mjs";

const STEPS = { dependencies, program };

/** Node's names of the architectures that a builder of images names. */
const CPUS = { amd64: "x64", arm64: "arm64" };

/** The versions come from the lock of the project, those of the libraries for object stores and tracing included. */
function dependencies(folder, architecture) {
  const { peerDependencies } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  reduceDependencies(folder, Object.keys(peerDependencies));
  const cpu = CPUS[architecture];
  const platform = cpu === undefined ? [] : ["--os=linux", `--cpu=${cpu}`, "--libc=glibc"];
  execFileSync("npm", ["ci", "--omit=dev", "--ignore-scripts", ...platform], {
    cwd: folder,
    stdio: "inherit",
  });
  // npm leaves out an optional package that the registry does not have.
  const engine = `@lancedb/lancedb-linux-${cpu ?? process.arch}-gnu`;
  if (!existsSync(join(folder, "node_modules", engine))) throw new Error(`${engine} was not installed`);
  removeUnusedFiles(folder);
}

function program(packed, folder) {
  const archive = readdirSync(packed).find((name) => name.endsWith(".tgz"));
  mkdirSync(folder, { recursive: true });
  execFileSync("tar", ["-xzf", join(packed, archive), "-C", folder, "--strip-components=1"]);
}

const [step, ...folders] = process.argv.slice(2);
STEPS[step](...folders);
