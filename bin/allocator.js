// The allocator with which a gateway works on rows (docs/adr/0028). Plain JavaScript for Node 16: the program of the package and
// scripts/run.mjs use it before anything else is there.
import { existsSync } from "node:fs";

/** Where distributions of Linux with glibc have the library. */
const FOLDERS = { x64: ["x86_64-linux-gnu", "lib64"], arm64: ["aarch64-linux-gnu", "lib64"] };
const LIBRARY = "libjemalloc.so.2";

/** Options of the allocator: a merge takes the time that it takes with huge pages, and a scan that with memory that is freed lazily. */
const OPTIONS = "oversize_threshold:0,muzzy_decay_ms:-1,thp:always,narenas:4";

/**
 * Returns the variables with which a gateway gets the better allocator; none where the system does not have it, where `LD_PRELOAD` is
 * set, even to nothing, and in front of another catalog, where a second start and huge pages cost more than they give.
 *
 * @param {readonly string[]} args arguments of the program
 * @param {Readonly<Record<string, string | undefined>>} environment
 * @returns {Record<string, string>}
 */
export function allocatorVariables(args, environment = process.env) {
  if (args[0] !== "serve" || process.platform !== "linux" || environment.LD_PRELOAD !== undefined) return {};
  if (isProxy(args, environment)) return {};
  const folders = (FOLDERS[process.arch] ?? []).map((name) =>
    name === "lib64" ? "/usr/lib64" : `/usr/lib/${name}`,
  );
  const library = folders.map((folder) => `${folder}/${LIBRARY}`).find((path) => existsSync(path));
  return library === undefined ? {} : { MALLOC_CONF: OPTIONS, ...set(environment), LD_PRELOAD: library };
}

/** Whether arguments and variables alone say that the gateway works on no rows. With a configuration file it may work on some. */
function isProxy(args, environment) {
  const option = (name) => {
    const at = args.findIndex((arg) => arg === `--${name}` || arg.startsWith(`--${name}=`));
    if (at === -1) return environment[`LANCE_GATEWAY_${name.toUpperCase()}`];
    return args[at].split("=")[1] ?? args[at + 1];
  };
  if ((option("config") ?? option("rows")) !== undefined) return false;
  const kind = option("backend");
  if (kind === undefined) return (option("uri") ?? option("address")) !== undefined;
  return kind === "rest" || kind === "grpc";
}

function set({ MALLOC_CONF }) {
  return MALLOC_CONF === undefined ? {} : { MALLOC_CONF };
}

/** Starts the program anew in this process with other variables, if there are any; returns where Node cannot do that. */
export function restartWith(variables) {
  const { argv, channel, env, execArgv, execPath, execve, permission } = process;
  // A Node with --permission may not do so, and a parent's channel would be lost.
  if (execve === undefined || permission !== undefined || channel !== undefined) return;
  if (Object.keys(variables).length === 0) return;
  execve(execPath, [execPath, ...execArgv, ...argv.slice(1)], { ...env, ...variables });
}
