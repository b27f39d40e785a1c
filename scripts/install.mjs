// Installs the locked dependencies: what serving needs for a start, and the rest for everything else.
// Plain JavaScript for Node 20, with nothing but its own modules: it runs before anything is installed.
import {
  copyFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
} from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { isNodeNewEnough } from "../bin/node-version.js";
import { reduceDependencies, removeUnusedFiles } from "./reduced-dependencies.mjs";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const modules = join(root, "node_modules");

/** Programs that the dependencies of serving are enough for. */
const SERVING = ["scripts/start.ts", "src/cli/main.ts"].map((path) => join(root, path));

/** Packages of the console, which the gateway itself does not load. */
const CONSOLE = [
  ...["@codemirror/autocomplete", "@codemirror/commands", "@codemirror/lang-sql", "@codemirror/language"],
  ...["@codemirror/state", "@codemirror/view", "@lezer/highlight"],
  ...["fflate", "fzstd", "hyparquet", "hyparquet-writer", "preact", "uplot", "vite"],
];

const TERMINAL_INTERVAL_MS = 1_000;
const LOG_INTERVAL_MS = 5_000;

/** Options for an installation that this module reports on. */
const QUIET = ["--loglevel=error", "--no-progress"];

/**
 * Installs the packages that a program needs and that are missing.
 *
 * @param program path of the program.
 * @param run runs a command with its arguments, standard streams and working directory, and resolves to its exit code.
 * @throws Error if a command fails.
 */
export async function installFor(program, run) {
  const installed = installedPackages();
  const isServing = SERVING.includes(resolve(program ?? ""));
  if (installed.includes('"node_modules/vitest"') || (isServing && installed !== "")) return;
  if (isServing) return installServing(run);
  if (installed === "")
    return report("the locked dependencies", modules, () => npm(run, root, "ci", ...QUIET));
  // Unlike `npm ci`, this leaves a gateway that is running its modules.
  const rest = ["install", "--no-save", ...QUIET];
  return report("the rest of the locked dependencies", modules, () => npm(run, root, ...rest));
}

/** The list of installed packages, which npm writes last; "" if there is none. */
function installedPackages() {
  const list = join(modules, ".package-lock.json");
  return existsSync(list) ? readFileSync(list, "utf8") : "";
}

async function installServing(run) {
  const folder = join(root, ".cache", `serving-${process.pid}`);
  mkdirSync(folder, { recursive: true });
  process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
  for (const name of ["package.json", "package-lock.json", ".npmrc"])
    copyFileSync(join(root, name), join(folder, name));
  const node = JSON.parse(readFileSync(join(root, "package.json"), "utf8")).devDependencies.node;
  reduceDependencies(folder, CONSOLE);
  await report("what serving needs", folder, async () => {
    const packages = npm(run, folder, "ci", "--omit=dev", "--ignore-scripts", ...QUIET);
    await (isNodeNewEnough()
      ? packages
      : Promise.all([packages, fetchNode(run, join(folder, "node"), node)]));
  });
  removeUnusedFiles(folder);
  if (existsSync(join(folder, "node")))
    renameSync(join(folder, "node"), join(folder, "node_modules", "node"));
  // Another start may have been faster, and runs with these modules.
  if (installedPackages() !== "") return;
  rmSync(modules, { recursive: true, force: true });
  renameSync(join(folder, "node_modules"), modules);
}

/**
 * Fetches the program that the package `node` would fetch in a script, without the headers of 67 MB, and at the same time as
 * the other packages.
 */
async function fetchNode(run, folder, version) {
  mkdirSync(folder, { recursive: true });
  const { platform, arch } = process;
  const prefix = platform === "darwin" && arch === "arm64" ? "node-bin" : "node";
  const name = `${prefix}-${platform}-${arch}`;
  await npm(run, folder, "pack", `${name}@${version}`, ...QUIET);
  const args = ["-xzf", `${name}-${version}.tgz`, "--strip-components=1", "package/bin/node"];
  await check("tar", run("tar", args, ["ignore", "ignore", 2], folder));
  rmSync(join(folder, `${name}-${version}.tgz`));
}

function npm(run, cwd, ...args) {
  const program = process.env.npm_execpath;
  const stdio = ["ignore", "ignore", 2];
  const done = program ? run(process.execPath, [program, ...args], stdio, cwd) : run("npm", args, stdio, cwd);
  return check(`npm ${args[0]}`, done);
}

async function check(command, done) {
  const code = await done;
  if (code !== 0) throw new Error(`${command} ended with code ${code}`);
}

/** Does work that fills a folder, and says meanwhile on standard error how far it is. */
async function report(what, folder, work) {
  const { stderr } = process;
  const begun = performance.now();
  const state = () => `${sizeOf(folder)} MB, ${Math.round((performance.now() - begun) / 1000)} s`;
  stderr.write(`Installing ${what} (once)...\n`);
  const show = () => stderr.write(stderr.isTTY ? `\r  ${state()}` : `  ${state()}\n`);
  const timer = setInterval(show, stderr.isTTY ? TERMINAL_INTERVAL_MS : LOG_INTERVAL_MS);
  try {
    await work();
  } finally {
    clearInterval(timer);
    if (stderr.isTTY) stderr.write("\r");
  }
  stderr.write(`  ${state()}: installed\n`);
}

/** Returns the size of a folder that others may be changing, in MB. */
function sizeOf(folder) {
  let bytes = 0;
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    // Node 20.0 has no `parentPath`.
    const path = join(entry.parentPath ?? entry.path, entry.name);
    bytes += lstatSync(path, { throwIfNoEntry: false })?.size ?? 0;
  }
  return Math.round(bytes / 1e6);
}
