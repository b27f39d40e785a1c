import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { NODE } from "../../test/support/node-command.ts";
import { computedSeconds } from "../support/cpu.ts";

/** Computing that takes a part of a processor. */
export interface Busy {
  readonly share: number;
}

/** A request that is repeated. */
export interface Sending {
  readonly port: number;
  /** Bytes of the request, as HTTP/1.1 has them. */
  readonly request: string;
  readonly connections: number;
  /** Default: as many as are answered. */
  readonly perSecond?: number;
}

/** Requests that were answered. */
export interface Done {
  readonly sent: number;
  readonly refused: number;
}

/** Work of another process beside a measurement. */
export type Neighbour =
  | { readonly kind: "spin"; readonly work: Busy }
  | { readonly kind: "send"; readonly work: Sending };

/** The part of a processor that its process has taken during the measurement, and its requests. */
export interface Beside<T> extends Done {
  readonly result: T;
  readonly share: number;
}

/** Measures while another process is busy. */
export async function measureBeside<T>(
  { kind, work }: Neighbour,
  measure: () => Promise<T>,
): Promise<Beside<T>> {
  const program = join(import.meta.dirname, "neighbour-process.ts");
  const [command, ...flags] = NODE;
  const child = spawn(command, [...flags, program, kind, JSON.stringify(work)], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const exited = once(child, "exit");
  try {
    await lines.next();
    const [before, started] = [computedSeconds(child.pid ?? 0), performance.now()];
    const result = await measure();
    const seconds = (performance.now() - started) / 1000;
    const share = (computedSeconds(child.pid ?? 0) - before) / seconds;
    child.stdin.end();
    const { value } = await lines.next();
    return { ...(JSON.parse(value as string) as Done), result, share };
  } finally {
    child.kill();
    await exited;
  }
}
