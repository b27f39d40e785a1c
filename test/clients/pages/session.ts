import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect } from "vitest";
import { freePort } from "../../support/free-port.ts";
import { ROOT, runTool } from "../support/tools.ts";
import { type Block, blocksOf } from "./blocks.ts";
import { readersFolder } from "./folder.ts";

/** Needs of a page beyond a folder and the package. */
export interface PageOptions {
  /** Folders with further programs. Default: none. */
  readonly path?: readonly string[];
  /** Servers that the page takes for granted: their ports, by the port that the page names. Default: none. */
  readonly ports?: Readonly<Record<number, number>>;
  /** Puts files into the folder that the page says to be there. Default: none. */
  readonly prepare?: (folder: string) => void;
  /** Page in Markdown that is followed first, for what this page takes for granted. Default: none. */
  readonly before?: string;
  /** Whether each server and program takes the place of the last server of the page. Default: they run beside each other. */
  readonly apart?: boolean;
}

/** How long a block may take, in milliseconds. */
const TIME_LIMIT_MS = 180_000;

/** Where a page names a port of this machine. */
const PORT = /(?:localhost:|127\.0\.0\.1:|0\.0\.0\.0:|--port |port: )(\d{4,5})\b/g;

/** File of a configuration for which the page has no name. */
const CONFIGURATION = "checked.yaml";

/** How the shell runs a block of another language. */
const PROGRAMS: Readonly<Record<string, readonly [program: string, extension: string]>> = {
  py: ["python", "py"],
  js: ["node", "mjs"],
  ts: ["node", "mts"],
};

/**
 * Does what a page says, block after block, in a folder of its own and on free ports. Variables and the working directory
 * remain from block to block, as in a terminal.
 *
 * @throws Error with the line of the block that failed, or that printed something else
 */
export async function runPage(
  page: string,
  { path = [], ports = {}, prepare, before = "", apart = false }: PageOptions,
): Promise<void> {
  const text = readFileSync(join(ROOT, page), "utf8");
  const folder = readersFolder();
  prepare?.(folder);
  const named = new Map(Object.entries(ports).map(([from, to]) => [Number(from), to]));
  for (const [, port = ""] of `${before}${text}`.matchAll(PORT))
    if (!named.has(Number(port))) named.set(Number(port), await freePort("0.0.0.0"));
  const [ground, shell] = [createShell(folder, path, named), createShell(folder, path, named)];
  const blocks = blocksOf(text);
  try {
    for (const block of blocksOf(before)) await ground.take(block);
    let printed = "";
    for (const block of blocks) {
      if (block.stops || (apart && opensServer(block))) await shell.stop("SIGINT");
      try {
        if (block.kind === "output") expectOutput(printed, block.code);
        else printed = await shell.take(block);
      } catch (cause) {
        throw new Error(`${page}:${block.line}: ${(cause as Error).message}`, { cause });
      }
    }
    if (blocks.some(({ kind, language }) => kind !== "skip" && language === "ts")) await checkTypes(folder);
  } finally {
    await shell.stop("SIGTERM");
    await ground.stop("SIGTERM");
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Whether a block may open a port: a program of its own can do it, too. */
function opensServer({ kind, language }: Block): boolean {
  return kind === "serve" || (kind === "run" && (language === "js" || language === "ts"));
}

/** Checks the types of all programs in the folder, because Node only removes them. */
async function checkTypes(folder: string): Promise<void> {
  const options = {
    ...{ noEmit: true, rootDir: "/", noPropertyAccessFromIndexSignature: false },
    ...{ noUnusedLocals: false, noUnusedParameters: false },
  };
  const files = readdirSync(folder).filter((name) => /\.m?ts$/.test(name));
  const project = { extends: join(ROOT, "tsconfig.json"), compilerOptions: options, files };
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(project));
  // Node finds out by itself that the files are modules.
  writeFileSync(join(folder, "package.json"), JSON.stringify({ type: "module" }));
  await runTool("tsc", ["-p", folder]);
}

function expectOutput(printed: string, expected: string): void {
  const tidy = (text: string) => text.trim().replaceAll(/[ \t]+$/gm, "");
  const parts = tidy(expected).split("…");
  const pattern = new RegExp(`^${parts.map(escaped).join(".*")}$`, "s");
  assert.ok(pattern.test(tidy(printed)), `the page shows\n${expected}\nand the command printed\n${printed}`);
}

function escaped(text: string): string {
  return text.replaceAll(/[\\^$.*+?()[\]{}|]/g, "\\$&");
}

function createShell(folder: string, path: readonly string[], ports: ReadonlyMap<number, number>) {
  const running: ChildProcess[] = [];
  const state = join(folder, "node_modules", "state");
  writeFileSync(state, "", { flag: "a" });
  const bin = [join(folder, "node_modules", "bin"), ...path, join(ROOT, "node_modules", ".bin")];
  const env = {
    ...process.env,
    XDG_CONFIG_HOME: join(folder, "node_modules", "config"),
    PATH: [...bin, process.env["PATH"]].join(":"),
    LANCE_GATEWAY_PORT: String(ports.get(2333) ?? 0),
    LANCE_GATEWAY_DRAIN_DELAY: "0s",
  };
  const translate = (text: string, map: Iterable<readonly [number, number]>) =>
    [...map].reduce((all, [from, to]) => all.replaceAll(new RegExp(`\\b${from}\\b`, "g"), `${to}`), text);
  const asShown = (text: string) =>
    translate(
      text,
      [...ports].map(([from, to]) => [to, from] as const),
    );

  /** Runs a script with the variables and the directory that the last one left; a server has to print an address. */
  async function run(script: string, serves: boolean): Promise<string> {
    const keep = `trap '{ export -p; printf "cd %q\\n" "$PWD"; } >"${state}"' EXIT`;
    const child = spawn("bash", ["-eu", "-o", "pipefail", "-c", `. "${state}"\n${keep}\n${script}`], {
      cwd: folder,
      env,
      ...(!serves && { timeout: TIME_LIMIT_MS }),
    });
    let [printed, errors] = ["", ""];
    child.stdout.on("data", (piece) => (printed += piece));
    child.stderr.on("data", (piece) => (errors += piece));
    const ended = once(child, "close");
    if (serves) {
      running.push(child);
      await Promise.race([
        ended,
        expect.poll(() => printed, { timeout: TIME_LIMIT_MS }).toMatch(/\w+:\/\/|\bunix:/),
      ]);
      assert.equal(child.exitCode, null, `the command ended:\n${printed}${errors}`);
    } else {
      await ended;
      assert.equal(child.exitCode, 0, `the command failed:\n${printed}${errors}`);
    }
    return asShown(printed);
  }

  return {
    /** Does what a reader does with a block, and returns what it prints. */
    async take({ kind, language, code, file, line }: Block): Promise<string> {
      if (kind === "skip") return "";
      const text = translate(code, ports);
      if (kind === "file") {
        mkdirSync(dirname(join(folder, file)), { recursive: true });
        writeFileSync(join(folder, file), `${text}\n`);
        return "";
      }
      if (kind === "config") {
        writeFileSync(join(folder, CONFIGURATION), `${text}\n`);
        return run(`lance-gateway config check ${CONFIGURATION}`, false);
      }
      if (kind === "check")
        return run(text.replaceAll("lance-gateway serve", "lance-gateway config check"), false);
      const [program, extension] = PROGRAMS[language] ?? [];
      if (program !== undefined) {
        // A program finds packages from its own folder.
        writeFileSync(join(folder, `block-${line}.${extension}`), text);
        return run(`${program} "${folder}/block-${line}.${extension}"`, false);
      }
      if (kind === "run") return run(text, false);
      const command = text.replace(/(?=lance-gateway serve\b)|^(?=.* # keeps running$)/m, "exec ");
      return run(`trap - EXIT\n${command}`, true);
    },
    /** Ends what keeps running. */
    async stop(signal: "SIGINT" | "SIGTERM"): Promise<void> {
      const left = running.splice(0).filter(({ exitCode, signalCode }) => (exitCode ?? signalCode) === null);
      const ended = Promise.all(left.map((child) => once(child, "exit")));
      for (const child of left) child.kill(signal);
      await ended;
    },
  };
}
