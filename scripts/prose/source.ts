import { type Finding, lintMarkdown } from "./lint.ts";

const COMMENT = /\/\*\*?(?<block>[\s\S]*?)\*\/|(?<lines>(?:^[ \t]*\/\/.*\n?)+)/gm;
const TITLE = /\b(?:test|it)(?:\.\w+)?\(\s*(?<quote>["'`])(?<title>(?:(?!\k<quote>)[^\\]|\\.)*)\k<quote>/g;

/** Checks the comments and the titles of tests in a TypeScript file. */
export function lintSource(file: string, text: string): Finding[] {
  return [...commentsOf(text), ...titlesOf(text)].flatMap(({ line, prose }) =>
    lintMarkdown(file, prose, line),
  );
}

interface Extract {
  readonly line: number;
  readonly prose: string;
}

function* commentsOf(text: string): Generator<Extract> {
  for (const match of text.matchAll(COMMENT)) {
    const { block, lines = "" } = match.groups ?? {};
    const prose =
      block === undefined
        ? lines.replaceAll(/^[ \t]*\/\/ ?/gm, "")
        : block.replaceAll(/^[ \t]*\*? ?/gm, "").replaceAll(/\{@link ([^}]*)\}|@param \w+|@\w+/g, "`$1`");
    yield { line: lineAt(text, match.index), prose };
  }
}

/** A title is a sentence in lower case without its full stop. */
function* titlesOf(text: string): Generator<Extract> {
  for (const match of text.matchAll(TITLE)) {
    const title = match.groups?.["title"] ?? "";
    yield { line: lineAt(text, match.index), prose: `${title.charAt(0).toUpperCase()}${title.slice(1)}.` };
  }
}

function lineAt(text: string, index: number): number {
  return text.slice(0, index).split("\n").length;
}
