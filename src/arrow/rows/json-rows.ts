import { createPace } from "../../runtime/pace.ts";
import { jsonSteps } from "./json-text.ts";
import { readBatches, undecodable } from "./read-batches.ts";
import { createTextReader, type TextForms } from "./row-texts.ts";

/** How rows are joined: as the objects of an array, or each in a line of its own. */
export type RowsForm = "array" | "lines";

/** Length of the text that is in memory at a time, in characters; a single value may be longer. */
const PIECE_CHARACTERS = 64 * 1024;

/** Text before the first row, before any other one, after each, and at the end. */
const MARKS = {
  array: { start: "[", between: ",\n", after: "", end: "]\n" },
  lines: { start: "", between: "", after: "\n", end: "" },
} as const;

/**
 * Writes the rows of an Arrow IPC stream as JSON, in the mapping of {@link createTextReader}. It reads a batch when the rows before it have been
 * taken, and lets other work run between the rows and within long ones.
 *
 * @throws LanceError Internal for bytes that cannot be decoded, and every error of the stream.
 */
export async function* toJsonRows(
  stream: AsyncIterable<Uint8Array>,
  form: RowsForm,
  forms?: TextForms,
): AsyncIterable<Uint8Array> {
  const read = createTextReader(await import("apache-arrow"), forms);
  const { start, between, after, end } = MARKS[form];
  const pace = createPace();
  let text: string = start;
  let [separator, isBegun] = ["", false];
  const write = (part: string) => {
    text += part;
  };
  for await (const batch of readBatches(stream)) {
    pace.begin();
    try {
      for (const row of read(batch)) {
        text += separator;
        separator = between;
        const steps = jsonSteps(row, write);
        for (let isDone = false; !isDone; ) {
          isDone = steps.next().done === true;
          if (text.length >= PIECE_CHARACTERS) {
            yield Buffer.from(text);
            text = "";
          }
          if (pace.isDue()) await pace.pause();
        }
        text += after;
      }
    } catch (thrown) {
      throw undecodable(thrown);
    }
    if (text === start) continue;
    yield Buffer.from(text);
    [text, isBegun] = ["", true];
  }
  // Without a piece there would be no answer.
  if (end !== "" || !isBegun) yield Buffer.from(text + end);
}
