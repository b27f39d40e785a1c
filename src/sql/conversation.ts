import { LanceError } from "../namespace/errors.ts";
import type { EngineProcess } from "./process/engine-process.ts";
import type { Reply, Request, ScanReply, ScanRequest } from "./process/messages.ts";

/** Reply to a request, with what the process sent along. */
export interface Answered {
  readonly body: Uint8Array;
  /** Number of bytes of the first part of the body. */
  readonly firstBytes: number;
}

/** Reads columns of the table at a place of the statement. */
export type ScanPlace = (
  place: number,
  columns: readonly string[],
  signal: AbortSignal,
) => AsyncIterable<Uint8Array>;

/** Talks with a process about one statement, and reads tables for it. */
export interface Conversation {
  /** @throws LanceError of the statement, or of a table that it reads */
  ask(request: Request, body?: Uint8Array): Promise<Answered>;
  /** Yields the IPC messages of the result. */
  run(request: Request, body: Uint8Array): AsyncIterable<Uint8Array>;
  /** Whether the process has answered everything, so that it can work on another statement. */
  readonly isIdle: boolean;
  /** Ends the scans. */
  end(): Promise<void>;
}

export function createConversation(
  process: EngineProcess,
  scanPlace: ScanPlace,
  signal: AbortSignal,
  memoryMib: number,
): Conversation {
  const scans = new Map<number, ReturnType<typeof createScan>>();
  let failure: unknown;
  let isIdle = true;

  /** Answers what the process asks for until it replies. */
  async function replied(request: Request): Promise<{ readonly header: Reply; readonly body: Uint8Array }> {
    for (;;) {
      const frame = await process.receive<Reply | ScanRequest>();
      if (frame === undefined) throw failureOfProcess(process, signal, memoryMib);
      const { header, body } = frame;
      switch (header.kind) {
        case "open":
          scans.set(header.scan, createScan(scanPlace(header.place, header.columns, signal)));
          break;
        case "next":
          await pass(header.scan);
          break;
        case "error":
          isIdle = request.kind !== "run";
          throw failure ?? errorOf(header, memoryMib);
        default:
          return { header: header as Reply, body };
      }
    }
  }

  async function pass(number: number): Promise<void> {
    try {
      const piece = await scans.get(number)?.next();
      if (piece !== undefined) {
        await process.send({ kind: "piece" } satisfies ScanReply, piece);
        return;
      }
      scans.delete(number);
      await process.send({ kind: "end" } satisfies ScanReply);
    } catch (thrown) {
      failure ??= thrown;
      await process.send({ kind: "failed" } satisfies ScanReply);
    }
  }

  return {
    get isIdle() {
      return isIdle;
    },
    async ask(request, sent) {
      isIdle = false;
      failure = undefined;
      await process.send(request, sent);
      const { header, body } = await replied(request);
      isIdle = true;
      return { body, firstBytes: header.kind === "done" ? (header.firstBytes ?? 0) : 0 };
    },
    async *run(request, sent) {
      // A result that failed, or that nobody reads, leaves the engine in an unknown state.
      isIdle = false;
      failure = undefined;
      await process.send(request, sent);
      for (;;) {
        const { header, body } = await replied(request);
        if (header.kind !== "message") break;
        yield body;
      }
      isIdle = true;
    },
    async end() {
      await Promise.all([...scans.values()].map((scan) => scan.end()));
    },
  };
}

/** Reads a table one piece ahead of the process. */
function createScan(rows: AsyncIterable<Uint8Array>) {
  const pieces = rows[Symbol.asyncIterator]();
  let ahead: Promise<IteratorResult<Uint8Array>> | undefined;
  const read = () => {
    const next = pieces.next();
    next.catch(() => {});
    return next;
  };
  ahead = read();
  return {
    async next(): Promise<Uint8Array | undefined> {
      const { done, value } = await (ahead as Promise<IteratorResult<Uint8Array>>);
      if (done) return undefined;
      ahead = read();
      return value;
    },
    async end(): Promise<void> {
      await ahead?.catch(() => {});
      await pieces.return?.().catch(() => {});
    },
  };
}

function failureOfProcess(process: EngineProcess, signal: AbortSignal, memoryMib: number): unknown {
  if (signal.aborted) return signal.reason;
  if (process.isTooLarge) return tooMuchMemory(memoryMib);
  return new LanceError(
    "ServiceUnavailable",
    "the process of the SQL engine ended; the statement may need too much memory",
    {
      cause: new Error(process.errorText),
    },
  );
}

/** DuckDB's own form of an error. */
interface Described {
  readonly exception_type?: string;
  readonly exception_message?: string;
}

function tooMuchMemory(memoryMib: number): LanceError {
  const message = `the statement needs more than the ${memoryMib} MiB of memory that a statement has`;
  return new LanceError("PayloadTooLarge", message);
}

function errorOf({ message, bound }: Extract<Reply, { kind: "error" }>, memoryMib: number): LanceError {
  const { exception_type: type = "", exception_message: text = message } = described(message);
  if (bound === "rows") return new LanceError("PayloadTooLarge", text);
  if (bound === "memory") return tooMuchMemory(memoryMib);
  if (/^(?:internal|fatal)$/i.test(type))
    return new LanceError("Internal", "the SQL engine failed", { cause: new Error(text) });
  return new LanceError(
    "InvalidInput",
    `the statement fails: ${type === "" ? "" : `${type} error: `}${text}`,
  );
}

function described(message: string): Described {
  const json = /\{.*\}/s.exec(message)?.[0];
  try {
    return json === undefined ? {} : (JSON.parse(json) as Described);
  } catch {
    return {};
  }
}
