import { behindSpaces, effectOf, endOfComment } from "../../sql/statement-text.ts";
import type { Output } from "../commands/rows/row-output.ts";
import { isYes } from "../terminal/confirm.ts";
import { INTERRUPTED, type LineReader } from "./line-reader.ts";

/** Parts of {@link runShell}. */
export interface ShellOptions {
  readonly reader: LineReader;
  /** Whether a person types the statements: a failure then ends the statement, and not the shell. */
  readonly isTerminal: boolean;
  readonly output: Output;
  /** Whether a person is asked before a statement changes or removes data. */
  readonly asks: boolean;
  /** Runs a statement and writes its rows. */
  run(statement: string, output: Output, signal: AbortSignal): Promise<void>;
  /** Yields the tables as statements name them. */
  tables(signal: AbortSignal): AsyncIterable<string>;
  /** Writes a line for the user. */
  say(text: string): void;
  /** Returns the text of a failure. */
  textOf(thrown: unknown): string;
  /** Ends the shell. */
  readonly signal: AbortSignal;
}

export const SHELL_HELP = `A statement ends with a semicolon, and may have several lines. Ctrl-C cancels it, and Ctrl-D quits.
  \\d            lists the tables
  \\d TABLE      lists the columns of a table
  \\format NAME  prints rows as table, csv, tsv or jsonl
  \\x            prints each row as a list, or no longer
  \\o FILE       writes rows to a file: .arrow, .arrows, .parquet, .csv, .tsv or .jsonl
  \\o            prints them again
  \\timing       prints how long statements take, or no longer
  \\?            prints this
  \\q            quits
`;

const PROMPT = "lance> ";
const GOING_ON = "   ... ";
const QUESTION = "This statement changes or removes data. Run it? [y/N] ";

/** Formats that a terminal shows. */
const SHOWN = ["table", "csv", "tsv", "jsonl"] as const;

/** Reads statements and commands, and runs them, until the input ends. */
export async function runShell(options: ShellOptions): Promise<void> {
  const { reader, isTerminal, asks, signal, say, textOf } = options;
  let output = options.output;
  let hasTiming = false;
  let text = "";

  async function attempt(work: (signal: AbortSignal) => Promise<void>): Promise<void> {
    const own = new AbortController();
    const started = performance.now();
    try {
      await reader.whileRunning(
        () => own.abort(),
        () => work(AbortSignal.any([signal, own.signal])),
      );
      if (hasTiming) say(`Time: ${Math.round(performance.now() - started)} ms`);
    } catch (thrown) {
      if (signal.aborted || !isTerminal) throw thrown;
      say(own.signal.aborted ? "cancelled" : textOf(thrown));
    }
  }

  /** Runs a command; returns whether the shell goes on. */
  async function command(line: string): Promise<boolean> {
    const [, name = "", argument = ""] = /^\\(\S*)\s*(.*?)\s*;?\s*$/.exec(line) ?? [];
    switch (name) {
      case "q":
        return false;
      case "?":
        say(SHELL_HELP.trimEnd());
        return true;
      case "d":
        await attempt(async (stop) => {
          if (argument !== "") return options.run(`DESCRIBE ${argument}`, { format: "table" }, stop);
          for await (const table of options.tables(stop)) say(table);
        });
        return true;
      case "timing":
        hasTiming = !hasTiming;
        say(`Timing is ${hasTiming ? "on" : "off"}.`);
        return true;
      case "x":
        output = { ...output, expanded: output.expanded !== true };
        say(`Rows are ${output.expanded ? "lists" : "lines"}.`);
        return true;
      case "o":
        output = { ...output, file: argument === "" ? undefined : argument };
        return true;
      case "format": {
        const format = SHOWN.find((each) => each === argument);
        if (format === undefined) say(`\\format takes one of ${SHOWN.join(", ")}`);
        else output = { ...output, format, expanded: false };
        return true;
      }
      default:
        say(`there is no command \\${name}; \\? lists them`);
        return true;
    }
  }

  /** Asks before a statement loses something, and runs it. */
  async function execute(statement: string): Promise<void> {
    if (asks && effectOf(statement) === "changes") {
      const answer = await reader.ask(QUESTION);
      if (!isYes(answer ?? "")) return say("nothing was done");
    }
    await attempt((stop) => options.run(statement, output, stop));
  }

  for (;;) {
    const line = await reader.ask(isBlank(text) ? PROMPT : GOING_ON);
    if (line === undefined) break;
    if (line === INTERRUPTED) {
      text = "";
      continue;
    }
    if (isBlank(text) && line.trimStart().startsWith("\\")) {
      if (!(await command(line.trim()))) return;
      continue;
    }
    const { statements, rest } = splitStatements(`${text}${line}\n`);
    text = rest;
    for (const statement of statements) await execute(statement);
  }
  // A script may leave out the last semicolon.
  if (!isBlank(text) && !isTerminal) await execute(text.trim());
}

/** Statements that a text has so far. */
interface Split {
  /** Complete statements, without their semicolons. */
  readonly statements: readonly string[];
  /** Text behind them, which may go on in the next line. */
  readonly rest: string;
}

/** Starts of what may have a semicolon inside, each with its end. */
const OPENERS =
  /(?<![\w$])[eE]'(?:[^'\\]|''|\\[\s\S])*'|(?<![\w$])[eE]'|'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n\r]*(?:[\n\r]|$)|\$([A-Za-z_]\w*)?\$[\s\S]*?\$\1\$|;|['"]|\/\*|\$(?:[A-Za-z_]\w*)?\$/g;

/** Splits a text at the semicolons that end statements: those outside of texts, names in quotes and comments. */
export function splitStatements(text: string): Split {
  const statements: string[] = [];
  let from = 0;
  OPENERS.lastIndex = 0;
  for (let found = OPENERS.exec(text); found !== null; found = OPENERS.exec(text)) {
    const [part] = found;
    if (part === ";") {
      const statement = text.slice(from, found.index).trim();
      if (statement !== "") statements.push(statement);
      from = OPENERS.lastIndex;
    }
    if (part === "/*") {
      const end = endOfComment(text, found.index);
      if (end === undefined) break;
      OPENERS.lastIndex = end;
    }
    // A quote that is not closed yet.
    if (["'", '"', "E'"].includes(part.toUpperCase()) || /^\$\w*\$$/.test(part)) break;
  }
  return { statements, rest: text.slice(from) };
}

/** Whether a text has nothing but spaces and comments. */
export function isBlank(text: string): boolean {
  return behindSpaces(text, 0) === text.length;
}
