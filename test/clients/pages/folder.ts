import { mkdirSync, mkdtempSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { NODE } from "../../support/node-command.ts";
import { ROOT } from "../support/tools.ts";

/**
 * Makes an empty folder as a reader has it who has installed the package and what the page asks for: the command
 * `lance-gateway` is in `bin` of its node_modules, and programs can import the package and everything that the project
 * has installed.
 */
export function readersFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "lance-gateway-page-"));
  const modules = join(folder, "node_modules");
  mkdirSync(join(modules, "bin"), { recursive: true });
  const command = [...NODE, join(ROOT, "src", "cli", "main.ts")].map((part) => `'${part}'`).join(" ");
  writeFileSync(join(modules, "bin", "lance-gateway"), `#!/bin/sh\nexec ${command} "$@"\n`, { mode: 0o700 });
  for (const name of readdirSync(join(ROOT, "node_modules")))
    if (!name.startsWith(".")) symlinkSync(join(ROOT, "node_modules", name), join(modules, name));
  linkPackage(join(modules, "lance-gateway"));
  return folder;
}

/** Makes a package whose parts are the sources instead of what is compiled from them. */
function linkPackage(folder: string): void {
  mkdirSync(folder);
  for (const part of ["src", "proto", "examples"]) symlinkSync(join(ROOT, part), join(folder, part));
  const manifest = readFileSync(join(ROOT, "package.json"), "utf8");
  writeFileSync(
    join(folder, "package.json"),
    manifest.replaceAll(/"\.\/dist\/([^"]+?)(?:\.d\.ts|\.js)"/g, '"./src/$1.ts"'),
  );
}
