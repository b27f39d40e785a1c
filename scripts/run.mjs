// Runs a program of this project with a Node that is new enough, after installing what the lock file names.
// Plain JavaScript for Node 20, with nothing but its own modules: it runs before anything is installed.
import { spawn, spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
// Types are stripped by Node itself from this version on.
const [neededMajor, neededMinor] = [22, 18];

function fail(message) {
  process.stderr.write(`${message}\n`);
  process.exit(1);
}

function install() {
  process.stderr.write("Installing the locked dependencies (once)...\n");
  const npm = process.env.npm_execpath;
  const [command, args] = npm
    ? [process.execPath, [npm, "ci", "--loglevel=error"]]
    : ["npm", ["ci", "--loglevel=error"]];
  const done = spawnSync(command, args, { cwd: root, stdio: ["ignore", 2, 2] });
  if (done.status !== 0) fail("The dependencies could not be installed; see the messages above.");
}

function currentNode() {
  const [major, minor] = process.versions.node.split(".").map(Number);
  if (major > neededMajor || (major === neededMajor && minor >= neededMinor)) return process.execPath;
  const bundled = join(root, "node_modules", "node", "bin", "node");
  if (existsSync(bundled)) return bundled;
  return fail(`Node ${neededMajor}.${neededMinor} or newer is needed; this is ${process.versions.node}.`);
}

if (!existsSync(join(root, "node_modules", ".package-lock.json"))) install();

// What has been stripped and compiled once is not again; a test run starts more than a hundred processes.
process.env.NODE_COMPILE_CACHE ??= join(root, "node_modules", ".cache", "compiled");
const args = ["--disable-warning=ExperimentalWarning", ...process.argv.slice(2)];
const child = spawn(currentNode(), args, { cwd: root, stdio: "inherit" });
// A terminal sends SIGINT to the whole group itself: forwarding it too would count as a second signal.
process.on("SIGINT", () => {});
for (const signal of ["SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
child.on("error", (error) => fail(`Cannot start Node: ${error.message}`));
child.on("exit", (code, signal) => process.exit(signal ? 128 : (code ?? 1)));
