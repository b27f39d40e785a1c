import type { Nodes, Root } from "mdast";
import { toString as plainText } from "mdast-util-to-string";
import remarkGfm from "remark-gfm";
import remarkParse from "remark-parse";
import { unified } from "unified";
import { visit } from "unist-util-visit";

const parser = unified().use(remarkParse).use(remarkGfm);

/** The syntax tree of a Markdown text. */
export function parseMarkdown(text: string): Root {
  return parser.parse(text);
}

/** A run of prose: a paragraph, a heading or the cell of a table. */
export interface Passage {
  /** Line of its first character, from 1. */
  readonly line: number;
  /** Its words; code is reduced to its backticks, so that no rule applies to names. */
  readonly text: string;
}

/** The passages of a Markdown text, in their order. */
export function passagesOf(text: string): Passage[] {
  const passages: Passage[] = [];
  visit(parseMarkdown(text), ["paragraph", "heading", "tableCell"], (node) => {
    passages.push({ line: node.position?.start.line ?? 1, text: wordsOf(node) });
  });
  return passages;
}

function wordsOf(node: Nodes): string {
  if (node.type === "inlineCode") return "``";
  if (node.type === "break") return "\n";
  return "children" in node ? node.children.map(wordsOf).join("") : plainText(node);
}
