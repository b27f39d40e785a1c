// Writes the reference of the client's API into .cache/api, by TypeDoc, which has a compiler of its own version.
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { npmTool } from "./npm-tool.ts";

const root = join(import.meta.dirname, "..");
const typedoc = npmTool("typedoc", "typedoc/bin/typedoc");

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
