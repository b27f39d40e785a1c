import { sizeText } from "../commands/text-table.ts";

/** Shows the progress of long work to people. */
export interface Progress {
  /** Reports further progress. */
  advance(amount: number): void;
  /** Reports how much is done, and the total if it is known now. */
  show(done: number, total?: number): void;
  /** Removes the bar. */
  end(): void;
}

/** Stream on which a bar is drawn. */
type Output = Pick<NodeJS.WriteStream, "isTTY" | "write"> & { readonly columns?: number };

/** Unit of an amount of work. */
type ProgressUnit = "bytes" | "rows" | "parts";

/** Options of {@link createProgress}. */
export interface ProgressOptions {
  readonly label: string;
  /** Total amount of work; undefined if it is unknown. */
  readonly total: number | undefined;
  readonly unit: ProgressUnit;
  /** Default: standard error; the bar appears only on a terminal. */
  readonly output?: Output;
}

const WIDTH = 24;
/** Width to which a longer label is cut. */
const LABEL_WIDTH = 20;
const INTERVAL_MS = 100;
const CLEAR_LINE = "\r\u001b[K";

/** Creates a progress bar. It is removed when it ends, or when the process exits before. */
export function createProgress({ label, total, unit, output = process.stderr }: ProgressOptions): Progress {
  if (!output.isTTY) return { advance() {}, show() {}, end() {} };
  const started = performance.now();
  let done = 0;
  let whole = total;
  let drawn = Number.NEGATIVE_INFINITY;
  let length = 0;
  let ended = false;
  const clear = () => {
    output.write(clearing(length, output.columns));
    length = 0;
  };
  process.once("exit", clear);

  function draw(): void {
    const now = performance.now();
    if (ended || now - drawn < INTERVAL_MS) return;
    drawn = now;
    const text = progressText(label, done, whole, unit, (now - started) / 1000, output.columns);
    output.write(clearing(length, output.columns) + text);
    length = text.length;
  }

  return {
    advance(amount) {
      done += amount;
      draw();
    },
    show(amount, of = whole) {
      [done, whole] = [amount, of];
      draw();
    },
    end() {
      ended = true;
      process.off("exit", clear);
      clear();
    },
  };
}

/** Returns what removes a line, which a terminal that became narrower since has wrapped. */
function clearing(length: number, columns = 80): string {
  const wrapped = Math.max(0, Math.ceil(length / Math.max(1, columns)) - 1);
  return wrapped === 0 ? CLEAR_LINE : `\r\u001b[${wrapped}A\u001b[J`;
}

/**
 * Returns a line of progress. A line that would reach the last column first loses the beginning of the label, then
 * that of the bar: a line that the terminal has wrapped cannot be erased.
 */
export function progressText(
  label: string,
  done: number,
  total: number | undefined,
  unit: ProgressUnit,
  seconds: number,
  columns = 80,
): string {
  const amount = (value: number) => (unit === "bytes" ? sizeText(value) : `${Math.round(value)} ${unit}`);
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
