import type { Code, Parents } from "mdast";
import { toString as plainText } from "mdast-util-to-string";
import { visit } from "unist-util-visit";
import { parseMarkdown } from "../../../scripts/prose/markdown.ts";

/** A block of code of a page, and what a reader does with it. */
export interface Block {
  /** Line of the page, from 1. */
  readonly line: number;
  readonly code: string;
  /**
   * `run`: it runs to its end. `serve`: its last command keeps running. `check`: its options are checked, and nothing serves.
   * `config`: it is a configuration, which is checked. `file`: it is the content of a file. `output`: the command before it
   * prints it; `…` is any text. `skip`: it is an example of data, or the page says why it does not run.
   */
  readonly kind: "run" | "serve" | "check" | "config" | "file" | "output" | "skip";
  readonly language: string;
  /** The file's name; of other kinds empty. */
  readonly file: string;
  /** Whether the text in front of it says to end what keeps running, with Ctrl-C. */
  readonly stops: boolean;
}

/** Languages of blocks that run unless they are files. */
const RUNNABLE: ReadonlySet<string> = new Set(["sh", "py", "js", "ts"]);

/** Languages of blocks that show data, forms or changes, which nobody runs. */
const SHOWN: ReadonlySet<string> = new Set(["json", "http", "sql", "promql", "rego", "diff"]);

/** Begins the paragraph or the comment in front of a block that does not run. */
const REASON = /^Not run: \S/;

/** Begins the comment in front of a gateway that needs something that the tests do not have. */
const CHECKED = /^Checked: \S/;

/** A first line that names the file that the block is: `# gateway.yaml`, `// main.go`. */
const FILE_NAME = /^(?:#|\/\/) (?<file>[\w-]+(?:[/.][\w-]+)*\.\w+)$/;

const KEEPS_RUNNING = /^(?:\w+=\S+ )*lance-gateway serve\b|^.* # keeps running$/m;

/**
 * Reads the blocks of a page, in order.
 *
 * @throws Error for a block that would be neither run nor checked, and has no reason for it
 */
export function blocksOf(page: string): Block[] {
  const blocks: Block[] = [];
  visit(parseMarkdown(page), "code", (node, index = 0, parent) => {
    blocks.push(blockOf(node, parent?.children.slice(0, index) ?? []));
  });
  return blocks;
}

/** Whether a page has blocks that a reader runs or copies, and not only data and drawings. */
export function hasSnippets(page: string): boolean {
  let found = false;
  visit(parseMarkdown(page), "code", ({ lang }) => {
    found ||= lang !== "text" && !SHOWN.has(lang ?? "");
  });
  return found;
}

function blockOf({ lang, value, position }: Code, before: Parents["children"]): Block {
  const line = position?.start.line ?? 1;
  const language = lang ?? "";
  const last = before.at(-1);
  const comment = last?.type === "html" ? (/^<!-- (.*) -->$/s.exec(last.value)?.[1] ?? "") : "";
  const previous = comment === "" ? last : before.at(-2);
  const text = previous?.type === "paragraph" ? plainText(previous) : "";
  const stops = /\bCtrl-C\b/.test(text);
  const file = FILE_NAME.exec(value.split("\n", 1)[0] ?? "")?.groups?.["file"] ?? "";
  const block = { line, language, code: value, file, stops };
  if (REASON.test(comment) || REASON.test(text)) return { ...block, kind: "skip" };
  if (language === "text" && previous?.type === "code") return { ...block, kind: "output" };
  if (file !== "") return { ...block, kind: "file" };
  if (SHOWN.has(language)) return { ...block, kind: "skip" };
  if (language === "yaml") return { ...block, kind: "config" };
  if (!RUNNABLE.has(language))
    throw new Error(
      `line ${line}: a block of "${language}" is run if it is ${[...RUNNABLE].join(", ")}, a file if its first line names it, output if it follows a block; ` +
        'for any other, begin the paragraph or the comment in front of it with "Not run: " and the reason',
    );
  if (CHECKED.test(comment)) {
    if (!value.includes("lance-gateway serve"))
      throw new Error(`line ${line}: a block without "lance-gateway serve" would be run instead of checked`);
    return { ...block, kind: "check" };
  }
  return { ...block, kind: KEEPS_RUNNING.test(value) ? "serve" : "run" };
}
