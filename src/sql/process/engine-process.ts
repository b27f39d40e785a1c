import { type ChildProcess, spawn } from "node:child_process";
import { readFile } from "node:fs/promises";
import type { Duplex } from "node:stream";
import { fileURLToPath } from "node:url";
import { programFile } from "../../runtime/package-files.ts";
import type { ProcessBounds } from "./messages.ts";
import { decodeFrame, encodeFrame, type Frame, LENGTHS_BYTES } from "./messages.ts";

/** The program of the process. */
const PROGRAM = fileURLToPath(programFile("sql/process/main"));

/** Size of the process's JavaScript heap, in MiB: it holds a batch of each table and one of the result. */
const HEAP_MIB = 256;

/** Memory of a process beside what DuckDB accounts for, in MiB: strings under way, JavaScript, and the program. */
export const OTHER_MIB = 768;

/**
 * Variables of the process: neither credentials nor options of the gateway. DuckDB's allocator keeps freed memory for the next statement, whose hash
 * tables would otherwise be new pages each time.
 */
const ENVIRONMENT = { TZ: "UTC", DUCKDB_JE_MALLOC_CONF: "dirty_decay_ms:10000,muzzy_decay_ms:10000" };

/** How often the memory of a process is looked at, in milliseconds. */
const WATCH_MS = 200;

/** A process that runs statements, one at a time. */
export interface EngineProcess {
  /** Sends a frame; resolves when the process takes more. */
  send(header: object, body?: Uint8Array): Promise<void>;
  /** Returns the next frame; undefined if the process has ended. */
  receive<T>(): Promise<Frame<T> | undefined>;
  /** Whether it has ended. */
  readonly hasEnded: boolean;
  /** Returns its memory in MiB; 0 if the system does not tell, as only Linux does. */
  memoryMib(): Promise<number>;
  /** Whether it was ended for its memory. */
  readonly isTooLarge: boolean;
  /** Text that the process wrote to its standard error. */
  readonly errorText: string;
  /** Ends it at once. */
  kill(): void;
}

/** Starts a process. */
export function startProcess(bounds: ProcessBounds): EngineProcess {
  const child = spawn(
    process.execPath,
    [
      `--max-old-space-size=${HEAP_MIB}`,
      "--disable-warning=ExperimentalWarning",
      PROGRAM,
      JSON.stringify(bounds),
    ],
    { env: ENVIRONMENT, stdio: ["ignore", "ignore", "pipe", "pipe"], serialization: "json" },
  );
  return new RunningProcess(child, bounds.memoryMib + bounds.keptMib + OTHER_MIB);
}

class RunningProcess implements EngineProcess {
  readonly #child: ChildProcess;
  readonly #connection: Duplex;
  readonly #chunks: AsyncIterator<Buffer>;
  #rest: Buffer = Buffer.alloc(0);
  hasEnded = false;
  isTooLarge = false;
  errorText = "";

  constructor(child: ChildProcess, mostMib: number) {
    this.#child = child;
    this.#connection = child.stdio[3] as Duplex;
    // The end of the process ends the connection, which is how a reader learns of it.
    for (const emitter of [this.#connection, child]) emitter.on("error", () => {});
    child.on("exit", () => {
      this.hasEnded = true;
    });
    child.stderr?.on("data", (text: Buffer) => {
      this.errorText = (this.errorText + text.toString()).slice(-2000);
    });
    const watch = setInterval(() => void this.#checkMemory(mostMib), WATCH_MS).unref();
    child.on("exit", () => clearInterval(watch));
    this.#chunks = this.#connection[Symbol.asyncIterator]();
  }

  async send(header: object, body?: Uint8Array): Promise<void> {
    for (const piece of encodeFrame(header, body)) {
      if (this.#connection.destroyed) return;
      if (!this.#connection.write(piece)) {
        await new Promise<void>((resolve) => {
          const go = () => {
            this.#connection.off("drain", go).off("close", go);
            resolve();
          };
          this.#connection.on("drain", go).on("close", go);
        });
      }
    }
  }

  async receive<T>(): Promise<Frame<T> | undefined> {
    const lengths = await this.#take(LENGTHS_BYTES);
    if (lengths === undefined) return undefined;
    const content = await this.#take(lengths.readUInt32LE(0) - 4);
    return content === undefined ? undefined : decodeFrame<T>(content, lengths.readUInt32LE(4));
  }

  /** Returns bytes in memory of their own. */
  async #take(count: number): Promise<Buffer | undefined> {
    const parts: Buffer[] = [this.#rest];
    let length = this.#rest.byteLength;
    while (length < count) {
      const next = await this.#chunks.next().catch(() => undefined);
      if (next === undefined || next.done) {
        this.hasEnded = true;
        return undefined;
      }
      parts.push(next.value);
      length += next.value.byteLength;
    }
    const all = parts.length === 1 ? (parts[0] as Buffer) : Buffer.concat(parts);
    this.#rest = all.subarray(count);
    return all.subarray(0, count);
  }

  async memoryMib(): Promise<number> {
    const status = await readFile(`/proc/${this.#child.pid}/status`, "utf8").catch(() => "");
    return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0) / 1024;
  }

  /** Ends the process if it has more memory than it may. */
  async #checkMemory(mostMib: number): Promise<void> {
    if ((await this.memoryMib()) <= mostMib) return;
    this.isTooLarge = true;
    this.kill();
  }

  kill(): void {
    this.hasEnded = true;
    this.#child.kill("SIGKILL");
    this.#connection.destroy();
  }
}
