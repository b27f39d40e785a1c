// Adds to the locks, the package's own and those of tools/, the packages for other platforms that a registry did not
// serve when a lock was made. `npm ci` wants an entry for each of them on every platform, also where it installs none.
// Takes from the lock the versions of Node that optional dependencies of the project name: npm leaves such a package out
// without a word where it runs on an older Node, while the scripts run on the Node that the project installs.
import { globSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

interface LockEntry {
  version?: string;
  dev?: boolean;
  optional?: boolean;
  engines?: Record<string, string>;
  os?: string[];
  cpu?: string[];
  libc?: string[];
  optionalDependencies?: Record<string, string>;
}

const OS = [
  "aix",
  "android",
  "darwin",
  "freebsd",
  "linux",
  "netbsd",
  "openbsd",
  "openharmony",
  "sunos",
  "win32",
];
const CPU = ["arm", "arm64", "ia32", "loong64", "mips64el", "ppc64", "riscv64", "s390x", "wasm32", "x64"];
const CPU_ALIAS: Readonly<Record<string, string>> = { armv7: "arm", aarch64: "arm64" };
const LIBC: Readonly<Record<string, string>> = { musl: "musl", gnu: "glibc" };

/** The entry that a package for one platform has, read from the words of its name. */
function platformEntry(name: string, version: string, dev: boolean | undefined): LockEntry | undefined {
  const words = name.split(/[/-]/).map((word) => CPU_ALIAS[word] ?? word);
  const os = OS.find((each) => words.includes(each));
  const cpu = CPU.find((each) => words.includes(each));
  if (os === undefined || !/^\d/.test(version)) return undefined;
  const libc = Object.entries(LIBC).find(([word]) => os === "linux" && words.includes(word))?.[1];
  return {
    version,
    ...(cpu !== undefined && { cpu: [cpu] }),
    ...(libc !== undefined && { libc: [libc] }),
    ...(dev && { dev }),
    optional: true,
    os: [os],
  };
}

function complete(path: string): void {
  const lock = JSON.parse(readFileSync(path, "utf8")) as { packages: Record<string, LockEntry> };
  for (const entry of Object.values(lock.packages)) {
    for (const [name, version] of Object.entries(entry.optionalDependencies ?? {})) {
      const key = `node_modules/${name}`;
      if (key in lock.packages) continue;
      const added = platformEntry(name, version, entry.dev);
      if (added === undefined) throw new Error(`${name} ${version} is not in ${path} and names no platform`);
      lock.packages[key] = added;
    }
  }
  for (const name of Object.keys(lock.packages[""]?.optionalDependencies ?? {})) {
    delete lock.packages[`node_modules/${name}`]?.engines;
  }
  lock.packages = Object.fromEntries(Object.entries(lock.packages).toSorted(([a], [b]) => (a < b ? -1 : 1)));
  writeFileSync(path, `${JSON.stringify(lock, undefined, 2)}\n`);
}

const root = join(import.meta.dirname, "..");
for (const path of globSync("{,tools/*/}package-lock.json", { cwd: root })) complete(join(root, path));
