import { sizeText } from "./commands/text-table.ts";

/** Shows the progress of long work to people. */
export interface Progress {
  /** Reports further progress. */
  advance(amount: number): void;
  /** Removes the bar. */
  end(): void;
}

/** Options of {@link createProgress}. */
export interface ProgressOptions {
  readonly label: string;
  /** Total amount of work; undefined if it is unknown. */
  readonly total: number | undefined;
  readonly unit: "bytes" | "rows";
  /** Stream on which the bar is drawn. Default: standard error; the bar appears only on a terminal. */
  readonly output?: Pick<NodeJS.WriteStream, "isTTY" | "write"> & { readonly columns?: number };
}

const WIDTH = 24;
/** Width to which a longer label is cut. */
const LABEL_WIDTH = 20;
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
      const text = progressText(label, done, total, unit, (now - started) / 1000, output.columns);
      output.write(CLEAR_LINE + text);
    },
    end: () => output.write(CLEAR_LINE),
  };
}

/**
 * Returns a line of progress. A line that would reach the last column first loses the beginning of the label, then
 * that of the bar: a line that the terminal has wrapped cannot be erased.
 */
export function progressText(
  label: string,
  done: number,
  total: number | undefined,
  unit: "bytes" | "rows",
  seconds: number,
  columns = 80,
): string {
  const amount = (value: number) => (unit === "bytes" ? sizeText(value) : `${Math.round(value)} rows`);
  const share = total === undefined || total === 0 ? 1 : Math.min(1, done / total);
  const known = total === undefined ? "" : `${Math.floor(share * 100)}%  `;
  const amounts = `${known}${amount(done)}${total === undefined ? "" : ` of ${amount(total)}`}`;
  const text = seconds > 0 ? `${amounts}  ${amount(done / seconds)}/s` : amounts;
  const room = columns - 1 - text.length;
  const width = total === undefined ? 0 : Math.min(WIDTH, room - 5 - Math.min(label.length, LABEL_WIDTH));
  const filled = Math.round(share * width);
  const bar = width < 1 ? "" : `[${"#".repeat(filled)}${"-".repeat(width - filled)}] `;
  return `${shortened(label, room - 2 - bar.length)}  ${bar}${text}`.slice(0, columns - 1);
}

function shortened(label: string, width: number): string {
  return label.length <= width || width < 2 ? label : `…${label.slice(1 - width)}`;
}
