// Makes dist from src, for the package: declarations of each module, and code that is joined.
import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { joinedCode } from "./join.ts";

const root = join(import.meta.dirname, "..");
rmSync(join(root, "dist"), { recursive: true, force: true });

const tsc = join(root, "node_modules", "typescript", "bin", "tsc");
const { status } = spawnSync(process.execPath, [tsc, "-p", "tsconfig.build.json"], {
  cwd: root,
  stdio: "inherit",
});
if (status !== 0) process.exit(status ?? 1);

for (const [name, text] of await joinedCode()) {
  const path = join(root, "dist", name);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}

// Files for browsers, which are served as they are.
const page = join("server", "openapi", "page");
cpSync(join(root, "src", page), join(root, "dist", page), { recursive: true });
