import stringWidth from "string-width";
import { slicesOf } from "../../../arrow/rows/csv-rows.ts";
import { textOfValue } from "../../../arrow/rows/row-texts.ts";
import { tableLines } from "../print-list.ts";
import { cleaned, fitsWidth, terminalWidth } from "../text-table.ts";

/** Number of characters to which a terminal's cells are cut. */
const CELL_CHARACTERS = 60;

/** Yields the rows of an answer as a table. @param mayExpand whether rows that do not fit a terminal become lists */
export async function* toTable(answer: AsyncIterable<Uint8Array>, mayExpand: boolean): AsyncIterable<string> {
  const slices = slicesOf(answer)[Symbol.asyncIterator]();
  const first = await slices.next();
  if (first.done) return;
  const { names } = first.value;
  const rest = { [Symbol.asyncIterator]: () => slices };
  if (mayExpand && !fitsWidth(names.length)) yield* recordsOf(rest);
  else yield* tableLines(cellsOf(names, rest));
}

/** Yields the rows of an answer as lists, with a line for each column. */
export async function* toRecords(answer: AsyncIterable<Uint8Array>): AsyncIterable<string> {
  yield* recordsOf(slicesOf(answer));
}

type Slices = ReturnType<typeof slicesOf>;

async function* cellsOf(names: readonly string[], slices: Slices): AsyncIterable<readonly string[]> {
  yield names;
  for await (const { rows } of slices) for (const row of rows) yield names.map((name) => cellText(row[name]));
}

async function* recordsOf(slices: Slices): AsyncIterable<string> {
  let number = 0;
  for await (const { names, rows } of slices) {
    const width = Math.max(0, ...names.map((name) => stringWidth(cleaned(name))));
    const line = (name: string, value: unknown) => {
      const shown = cleaned(name);
      return `${shown}${" ".repeat(width - stringWidth(shown))}  ${cleaned(valueText(value))}`.trimEnd();
    };
    const texts = rows.map((row) => {
      number++;
      return `-- row ${number}\n${names.map((name) => `${line(name, row[name])}\n`).join("")}`;
    });
    if (texts.length > 0) yield texts.join("");
  }
}

const TIME = /^((?:\d{4}|[-+]\d{6,})-\d\d-\d\d)T(\d\d:\d\d:\d\d(?:\.\d+)?)(Z?)$/;

function valueText(value: unknown): string {
  return textOfValue(value).replace(TIME, (_, date, time, zone) => `${date} ${time}${zone && " UTC"}`);
}

/** Returns a value for a table; only a terminal, which is narrow, has it cut. */
function cellText(value: unknown): string {
  const text = valueText(value);
  if (terminalWidth() === undefined || text.length <= CELL_CHARACTERS) return text;
  return `${text.slice(0, CELL_CHARACTERS - 1)}…`;
}
