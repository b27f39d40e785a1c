import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { basename, join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { pythonInterpreter } from "../../../scripts/python-environment.ts";
import { type RaceCall, type Racer, REFUSALS } from "../../faults/race/racer.ts";

interface Said {
  readonly serial: number;
  readonly ok: boolean;
  readonly code?: number;
  /** Message of pylance's error. */
  readonly text?: string;
  readonly location?: string | null;
  readonly tables?: string[] | null;
}

/** Refusals that took no effect. Anything else, such as Internal, may come after the row was changed. */
const KNOWN: readonly number[] = Object.values(REFUSALS);

interface PylanceRacer {
  readonly racer: Racer;
  /**
   * Merges rows into a table by a key of 64 bits, `id`. Its other columns are strings, which become `pylance`.
   *
   * @param updates whether rows with these keys are updated. Default: true
   */
  merge(id: readonly string[], keys: readonly number[], updates?: boolean): Promise<void>;
  end(): Promise<void>;
}

/**
 * Pylance's DirectoryNamespace on a base directory, in a process of its own, as a racer.
 *
 * @param properties those of the namespace, each as `key=value`. Default: none
 */
export function startPylanceRacer(base: string, ...properties: readonly string[]): PylanceRacer {
  const script = join(import.meta.dirname, "..", "python", "racer.py");
  const child: ChildProcess = spawn(pythonInterpreter(), [script, base, ...properties], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const waiting = new Map<number, (said: Said) => void>();
  createInterface({ input: child.stdout as Readable }).on("line", (line) => {
    const said = JSON.parse(line) as Said;
    waiting.get(said.serial)?.(said);
    waiting.delete(said.serial);
  });
  let serial = 0;
  type Asked =
    | RaceCall
    | { kind: "tables"; id: readonly string[] }
    | { kind: "merge"; id: readonly string[]; keys: readonly number[]; updates: boolean };
  const ask = (call: Asked) =>
    new Promise<Said>((resolve) => {
      serial++;
      waiting.set(serial, resolve);
      (child.stdin as Writable).write(`${JSON.stringify({ ...call, serial })}\n`);
    });
  return {
    racer: {
      name: "pylance",
      renames: false,
      async call(call) {
        const { ok, code = 0, text = "", location } = await ask(call);
        if (!ok) return { ok, code, text, ...(!KNOWN.includes(code) && { unclear: true }) };
        // A drop that finds its table gone when it tries again succeeds, and its answer has no location of its own.
        if (call.kind === "drop") return { ok, unclear: true };
        return { ok, ...(location && { location: basename(location) }) };
      },
      async tables(namespace) {
        return ((await ask({ kind: "tables", id: namespace })).tables ?? []).toSorted();
      },
    },
    async merge(id, keys, updates = true) {
      const { ok, text } = await ask({ kind: "merge", id, keys, updates });
      if (!ok) throw new Error(`pylance: ${text}`);
    },
    async end() {
      (child.stdin as Writable).end();
      await once(child, "exit");
    },
  };
}
