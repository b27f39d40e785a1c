import { isatty } from "node:tty";
import { styleText } from "node:util";
import { type DestinationStream, destination, type Logger, levels, pino } from "pino";
import { type Call, OF_CALL } from "../../namespace/call/call.ts";
import { escapeInvisible } from "../../runtime/text.ts";
import { redactText } from "./redact.ts";

/** Headers about the form of the answer, not about the caller; their values may be words of a text. */
const PLAIN_HEADERS: ReadonlySet<string> = new Set([
  "accept",
  "accept-encoding",
  "connection",
  "content-encoding",
  "content-type",
  "host",
  "te",
  "user-agent",
  "x-request-id",
]);

const MAX_DEPTH = 4;

/** Most bytes of lines that wait for a file that takes none. */
const MAX_WAITING = 1024 ** 2;

/**
 * Creates the log of the program, on standard error. It redacts everything in this single place: errors keep only
 * what is known to be harmless, and texts lose everything that looks like a credential, the secrets of the
 * configuration and, in the line of a call, the values of the client's headers and of its context.
 *
 * @param secrets texts that must not appear in the log.
 * @param to Default: standard error, in JSON.
 */
export function createLog(
  level: string,
  secrets: readonly string[] = [],
  to: DestinationStream = toStandardError("json"),
): Logger {
  const log = (fields: object): Record<string, unknown> => {
    const call = (fields as { [OF_CALL]?: Call })[OF_CALL];
    const redact = (text: string) =>
      redactText(text, call === undefined ? secrets : [...secrets, ...secretsOf(call)]);
    return Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, redacted(value, redact)]));
  };
  // The formatter's result for an error is written as it is.
  return pino({ level, formatters: { log }, serializers: { err: (fields: unknown) => fields } }, to);
}

const STANDARD_ERROR = 2;

/** Returns the way of lines to standard error, in a form. */
export function toStandardError(format: LogFormat): DestinationStream {
  return formatLines(format, STANDARD_ERROR, toDescriptor(STANDARD_ERROR));
}

/**
 * Returns the way of lines to a file descriptor. A log that nobody can read any more, such as on a terminal that has hung up, does not end
 * the program, and lines that a full disk does not take have a bound: the newest are lost.
 */
export function toDescriptor(fd: number): ReturnType<typeof destination> {
  return destination({ fd, sync: true, maxLength: MAX_WAITING }).on("error", () => {});
}

function redacted(value: unknown, redact: (text: string) => string, depth = 0): unknown {
  if (typeof value === "string") return redact(value);
  if (value instanceof Error) return errorFields(value, redact);
  if (typeof value !== "object" || value === null) return value;
  if (depth === MAX_DEPTH) return "…";
  if (Array.isArray(value)) return value.map((each) => redacted(each, redact, depth + 1));
  return Object.fromEntries(
    Object.entries(value).map(([name, each]) => [name, redacted(each, redact, depth + 1)]),
  );
}

function secretsOf({ headers, identity, brought = identity, context = {} }: Call): string[] {
  const values = Object.entries(headers).flatMap(([name, value]) => (PLAIN_HEADERS.has(name) ? [] : [value]));
  return [...values, ...Object.values(context), brought.apiKey, brought.authToken].filter(
    (value) => value !== undefined,
  );
}

/** Depth to which causes and nested errors are followed. */
const MAX_CAUSES = 5;
const MAX_ERRORS = 10;

/**
 * Logged fields of an error in addition to its text: names and numbers of systems, and nothing that a message
 * carried.
 */
const FACTS = [
  "code",
  "errno",
  "syscall",
  "address",
  "port",
  "status",
  "statusCode",
  "kind",
  "fault",
] as const;

/**
 * Returns the fields of an error for the log. It contains only the listed fields: libraries attach whole requests to
 * their errors, with the headers and the bytes that were sent (`rawPacket` of a malformed request, `metadata` of a
 * call, `config`).
 *
 * @param redact applied to every text.
 */
function errorFields(error: Error, redact: (text: string) => string, depth = 0): Record<string, unknown> {
  const facts = error as unknown as Readonly<Record<string, unknown>>;
  const fields: Record<string, unknown> = {
    type: error.constructor?.name ?? error.name,
    message: redact(error.message),
    stack: redact(error.stack ?? ""),
  };
  for (const name of FACTS) {
    const value = facts[name];
    if (typeof value === "number") fields[name] = value;
    else if (typeof value === "string") fields[name] = redact(value);
  }
  if (depth === MAX_CAUSES) return fields;
  const { cause } = error;
  if (cause instanceof Error) fields["cause"] = errorFields(cause, redact, depth + 1);
  else if (typeof cause === "string") fields["cause"] = redact(cause);
  if (error instanceof AggregateError) {
    const errors = error.errors.filter((each) => each instanceof Error).slice(0, MAX_ERRORS);
    fields["errors"] = errors.map((each) => errorFields(each, redact, depth + 1));
  }
  return fields;
}

/** A form of the log: `auto` is text on a terminal, and JSON elsewhere. */
type LogFormat = "auto" | "json" | "text";

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
