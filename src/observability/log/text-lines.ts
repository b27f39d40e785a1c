import { isatty } from "node:tty";
import { styleText } from "node:util";
import { type DestinationStream, levels } from "pino";
import { escapeInvisible } from "../../runtime/text/line-text.ts";

/** A form of the log: `auto` is text on a terminal, and JSON elsewhere. */
export type LogFormat = "auto" | "json" | "text";

const COLORS: Readonly<Record<number, "yellow" | "red">> = { 40: "yellow", 50: "red", 60: "red" };

/** Fields that a line has in another place, or that tell people nothing. */
const LEFT_OUT: ReadonlySet<string> = new Set(["level", "time", "msg", "pid", "hostname", "err"]);

/** Returns where the lines of a log go on their way to a file descriptor, which JSON reaches unchanged. */
export function formatLines(format: LogFormat, fd: number, to: DestinationStream): DestinationStream {
  if (format === "json" || (format === "auto" && !isatty(fd))) return to;
  // The library leaves colors out where NO_COLOR or a plain terminal wants none.
  const paint: Paint = (color, text) =>
    isatty(fd) ? styleText(color, text, { stream: process.stderr }) : text;
  return { write: (line) => to.write(lineText(line, paint)) };
}

/** Colors a text. */
type Paint = (color: "yellow" | "red", text: string) => string;

/** Returns a line of the log for people: the time of day, the level, the message and the fields. */
export function lineText(line: string, paint: Paint): string {
  const fields = JSON.parse(line) as Readonly<Record<string, unknown>>;
  const { level, time, msg = "", err } = fields;
  const name = (levels.labels[Number(level)] ?? String(level)).toUpperCase().padEnd(5);
  const color = COLORS[Number(level)];
  const shown = color === undefined ? name : paint(color, name);
  const facts = Object.entries(fields)
    .filter(([key]) => !LEFT_OUT.has(key))
    .map(([key, value]) => `${key}=${valueText(value)}`);
  const head = [timeOfDay(Number(time)), shown, plain(String(msg)), ...facts].filter((part) => part !== "");
  return `${head.join(" ")}\n${errorText(err)}`;
}

/** Returns the time on the clock of this machine, with milliseconds. */
function timeOfDay(millis: number): string {
  const date = new Date(millis);
  const two = (number: number) => String(number).padStart(2, "0");
  const clock = [date.getHours(), date.getMinutes(), date.getSeconds()].map(two).join(":");
  return `${clock}.${String(date.getMilliseconds()).padStart(3, "0")}`;
}

/** Values that need no quotes. */
const SIMPLE = /^[^\s"=]+$/;

function valueText(value: unknown): string {
  if (typeof value === "string" && SIMPLE.test(value)) return plain(value);
  return escapeInvisible(JSON.stringify(value));
}

/** Returns an error with its stack below the line, indented. */
function errorText(err: unknown): string {
  if (err === undefined) return "";
  const { stack, message, ...rest } = (
    typeof err === "object" && err !== null ? err : { message: err }
  ) as Readonly<Record<string, unknown>>;
  const lines = String(stack ?? message ?? "").split("\n");
  const more = Object.keys(rest).length > 0 ? [escapeInvisible(JSON.stringify(rest))] : [];
  return [...lines, ...more]
    .filter((each) => each !== "")
    .map((each) => `    ${plain(each.trim())}\n`)
    .join("");
}

/** Control characters, which JSON escapes. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: a terminal must not get them
const CONTROLS = /[\u0000-\u001f]/g;

function plain(text: string): string {
  return escapeInvisible(text).replaceAll(CONTROLS, (each) => JSON.stringify(each).slice(1, -1));
}
