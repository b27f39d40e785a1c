import { sizeText } from "./commands/text-table.ts";

/** Shows people how far a long work is. */
export interface Progress {
  /** Tells of more that is done. */
  advance(amount: number): void;
  /** Takes the bar away. */
  end(): void;
}

/** What {@link createProgress} needs. */
export interface ProgressOptions {
  readonly label: string;
  /** How much there is to do; undefined when nobody knows. */
  readonly total: number | undefined;
  readonly unit: "bytes" | "rows";
  /** Where the bar is drawn. Default: standard error; without a terminal there, there is none. */
  readonly output?: Pick<NodeJS.WriteStream, "isTTY" | "write">;
}

const WIDTH = 24;
const INTERVAL_MS = 100;
const CLEAR_LINE = "\r\u001b[K";

/** Creates a progress bar. */
export function createProgress({ label, total, unit, output = process.stderr }: ProgressOptions): Progress {
  if (!output.isTTY) return { advance() {}, end() {} };
  const started = performance.now();
  let done = 0;
  let drawn = Number.NEGATIVE_INFINITY;
  return {
    advance(amount) {
      done += amount;
      const now = performance.now();
      if (now - drawn < INTERVAL_MS) return;
      drawn = now;
      output.write(`${CLEAR_LINE}${progressText(label, done, total, unit, (now - started) / 1000)}`);
    },
    end: () => output.write(CLEAR_LINE),
  };
}

/** One line of progress. */
export function progressText(
  label: string,
  done: number,
  total: number | undefined,
  unit: "bytes" | "rows",
  seconds: number,
): string {
  const amount = (value: number) => (unit === "bytes" ? sizeText(value) : `${Math.round(value)} rows`);
  const speed = seconds > 0 ? `  ${amount(done / seconds)}/s` : "";
  if (total === undefined) return `${label}  ${amount(done)}${speed}`;
  const share = total === 0 ? 1 : Math.min(1, done / total);
  const filled = Math.round(share * WIDTH);
  const bar = `${"#".repeat(filled)}${"-".repeat(WIDTH - filled)}`;
  return `${label}  [${bar}] ${Math.floor(share * 100)}%  ${amount(done)} of ${amount(total)}${speed}`;
}
