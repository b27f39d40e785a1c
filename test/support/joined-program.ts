import { createHash, randomUUID } from "node:crypto";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { joinedCode } from "../../scripts/join.ts";

const ROOT = join(import.meta.dirname, "../..");
const PROGRAMS = join(ROOT, ".cache", "programs");

/** How long a program remains after its last run began, in milliseconds. */
const KEPT_MS = 24 * 3_600_000;

/** Files and folders that the program looks for beside the folder of its code. */
const BESIDE = ["package.json", "docs", "dist", "node_modules"];

/**
 * Joins the sources as the package has them, and returns the path of the program, which starts sooner than from the sources. Equal
 * sources are at an equal path, for which Node's cache has compiled code.
 */
export async function joinedProgram(): Promise<string> {
  const code = await joinedCode();
  const hash = createHash("sha256").update(JSON.stringify([...code]));
  const folder = join(PROGRAMS, hash.digest("hex").slice(0, 16));
  if (!existsSync(folder)) write(folder, code);
  const now = new Date();
  utimesSync(folder, now, now);
  return join(folder, "code", "cli", "main.js");
}

/** Another run may write the same folder at the same time. */
function write(folder: string, code: ReadonlyMap<string, string>): void {
  mkdirSync(PROGRAMS, { recursive: true });
  removeOld();
  // Not by mkdtemp, whose folders other users of the system may not read; a test starts the program as one of them.
  const draft = join(PROGRAMS, randomUUID());
  mkdirSync(join(draft, "code"), { recursive: true });
  for (const name of BESIDE) symlinkSync(join(ROOT, name), join(draft, name));
  mkdirSync(join(draft, "code", "server"));
  symlinkSync(join(ROOT, "src", "server", "openapi"), join(draft, "code", "server", "openapi"));
  for (const [name, text] of code) {
    const path = join(draft, "code", name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
  }
  try {
    renameSync(draft, folder);
  } catch (error) {
    rmSync(draft, { recursive: true });
    if (!existsSync(folder)) throw error;
  }
}

/** Removes programs that no run uses any more. */
function removeOld(): void {
  for (const name of readdirSync(PROGRAMS)) {
    const path = join(PROGRAMS, name);
    if (statSync(path).mtimeMs < Date.now() - KEPT_MS) rmSync(path, { recursive: true, force: true });
  }
}
