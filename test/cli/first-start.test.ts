import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { cp, mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import packageJson from "../../package.json" with { type: "json" };
import { temporaryDirectory } from "../support/directory.ts";

const ROOT = join(import.meta.dirname, "../..");

/** In place of npm: writes what it is asked and which packages the manifest has, and the list of installed packages. */
const NPM = `
const { appendFileSync, mkdirSync, readFileSync, writeFileSync } = require("node:fs");
const [command, ...args] = process.argv.slice(2);
const { dependencies, devDependencies = {} } = JSON.parse(readFileSync("package.json", "utf8"));
const names = Object.keys({ ...dependencies, ...devDependencies });
appendFileSync(process.env.CALLS, JSON.stringify({ command, args, names }) + "\\n");
mkdirSync("node_modules/parquet-wasm/esm", { recursive: true });
writeFileSync("node_modules/.package-lock.json", names.map((name) => '"node_modules/' + name + '"').join());
`;

interface Call {
  readonly command: string;
  readonly args: readonly string[];
  readonly names: readonly string[];
}

test("a clone installs what serving needs for its start, and the rest for everything else", async ({
  onTestFinished,
}) => {
  const { path, remove } = await temporaryDirectory();
  onTestFinished(remove);
  for (const name of ["package.json", "package-lock.json", ".npmrc", "bin", "scripts"])
    await cp(join(ROOT, name), join(path, name), { recursive: true });
  const [npm, log] = [join(path, "npm.cjs"), join(path, "calls")];
  await writeFile(npm, NPM);
  for (const program of ["src/cli/main.ts", "other.ts"]) {
    await mkdir(dirname(join(path, program)), { recursive: true });
    await writeFile(join(path, program), "console.log('ran');");
  }
  const calls = async (): Promise<Call[]> =>
    (await readFile(log, "utf8"))
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
  const run = (program: string) => {
    const env = { ...process.env, npm_execpath: npm, CALLS: log, npm_lifecycle_event: undefined };
    const { status, stdout, stderr } = spawnSync(
      process.execPath,
      [join(path, "scripts", "run.mjs"), program],
      { cwd: path, env, encoding: "utf8" },
    );
    expect([status, stdout]).toEqual([0, "ran\n"]);
    return stderr;
  };

  expect(run("src/cli/main.ts")).toMatch(/^Installing what serving needs.*\n.* MB, \d+ s: installed\n$/);
  const [serving] = await calls();
  expect(serving?.command).toBe("ci");
  expect(serving?.args).toContain("--omit=dev");
  expect(serving?.names).toEqual(expect.arrayContaining([...Object.keys(packageJson.dependencies), "vite"]));
  expect(serving?.names).not.toContain("vitest");

  expect(run("src/cli/main.ts")).toBe("");
  expect(run("other.ts")).toMatch(/^Installing the rest .*\n.* MB, \d+ s: installed\n$/);
  const [, rest, ...others] = await calls();
  expect(rest?.command).toBe("install");
  expect(rest?.args).toContain("--no-save");
  expect(rest?.names).toContain("vitest");
  expect(others).toEqual([]);
  expect(run("other.ts") + run("src/cli/main.ts")).toBe("");
});

test("everything that a first start leaves out exists", async () => {
  const text = await readFile(join(ROOT, "scripts", "reduced-dependencies.mjs"), "utf8");
  const lock = JSON.parse(await readFile(join(ROOT, "package-lock.json"), "utf8")) as { packages: object };
  const listed = (list: string) => {
    const [, names = ""] = new RegExp(`${list} = \\[(.*?)\\]`, "s").exec(text) ?? [];
    const found = [...names.matchAll(/"(.+?)"/g)].map(([, name = ""]) => name);
    expect(found.length).toBeGreaterThan(0);
    return found;
  };
  for (const name of listed("UNUSED_PACKAGES"))
    expect(lock.packages).toHaveProperty([`node_modules/${name}`]);
  const installed = listed("UNUSED_FOLDERS").filter((path) => existsSync(join(ROOT, "node_modules", path)));
  expect(installed).toEqual(listed("UNUSED_FOLDERS"));
});
