import type { Code, Nodes, Parents } from "mdast";
import { toString as plainText } from "mdast-util-to-string";
import { visit } from "unist-util-visit";
import { parseMarkdown } from "../../../scripts/prose/markdown.ts";

/** A block of code of a page, and what a reader does with it. */
export interface Block {
  /** Line of the page, from 1. */
  readonly line: number;
  readonly code: string;
  /**
   * `run`: it runs to its end. `serve`: its last command keeps running. `file`: it is the content of a file. `output`: the
   * command before it prints it; `…` is any text. `skip`: the page says why it does not run.
   */
  readonly kind: "run" | "serve" | "file" | "output" | "skip";
  readonly language: string;
  /** The file's name; of other kinds empty. */
  readonly file: string;
  /** Whether the text in front of it says to end what keeps running, with Ctrl-C. */
  readonly stops: boolean;
}

/** Languages of blocks that run unless they are files. */
const RUNNABLE = new Set(["sh", "py", "js"]);

/** Begins the paragraph in front of a block that does not run. */
const REASON = /^Not run: \S/;

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
  visit(parseMarkdown(page), "code", (node, index, parent) => {
    const before = index && parent ? (parent as Parents).children[index - 1] : undefined;
    blocks.push(blockOf(node, before));
  });
  return blocks;
}

function blockOf({ lang, value, position }: Code, before: Nodes | undefined): Block {
  const line = position?.start.line ?? 1;
  const language = lang ?? "";
  const text = before?.type === "paragraph" ? plainText(before) : "";
  const stops = /\bCtrl-C\b/.test(text);
  const file = FILE_NAME.exec(value.split("\n", 1)[0] ?? "")?.groups?.["file"] ?? "";
  const block = { line, language, code: value, file, stops };
  if (REASON.test(text)) return { ...block, kind: "skip" };
  if (language === "text" && before?.type === "code") return { ...block, kind: "output" };
  if (file !== "") return { ...block, kind: "file" };
  if (!RUNNABLE.has(language))
    throw new Error(
      `line ${line}: a block of "${language}" is run if it is ${[...RUNNABLE].join(", ")}, a file if its first line names it, output if it follows a block; ` +
        'for any other, begin the paragraph in front of it with "Not run: " and the reason',
    );
  return { ...block, kind: KEEPS_RUNNING.test(value) ? "serve" : "run" };
}
