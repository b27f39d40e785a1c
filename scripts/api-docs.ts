// Writes the reference of the client's API into .cache/api, by TypeDoc, which has a compiler of its own version.
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";

const PACKAGES = ["typedoc@0.28.20", "typescript@6.0.3"];

const root = join(import.meta.dirname, "..");
const folder = join(root, ".cache", "npm", "typedoc");
const typedoc = join(folder, "node_modules", "typedoc", "bin", "typedoc");

if (!existsSync(typedoc)) {
  mkdirSync(folder, { recursive: true });
  const args = ["install", "--prefix", folder, "--no-audit", "--no-fund", "--loglevel=error", ...PACKAGES];
  execFileSync("npm", args, { stdio: "inherit" });
}
// The sources are checked by the compiler of the project.
const out = join(root, ".cache", "api");
const options = [
  "--entryPoints",
  join(root, "src", "client", "index.ts"),
  "--tsconfig",
  join(root, "tsconfig.json"),
];
execFileSync(
  process.execPath,
  [
    typedoc,
    ...options,
    "--name",
    "lance-gateway/client",
    "--readme",
    "none",
    "--excludeInternal",
    "--skipErrorChecking",
    "--out",
    out,
  ],
  { cwd: root, stdio: "inherit" },
);
