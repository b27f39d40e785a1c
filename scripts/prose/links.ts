import { existsSync, readFileSync } from "node:fs";
import { dirname, relative, resolve } from "node:path";
import GithubSlugger from "github-slugger";
import { toString as plainText } from "mdast-util-to-string";
import { visit } from "unist-util-visit";
import type { Finding } from "./lint.ts";
import { parseMarkdown } from "./markdown.ts";

/**
 * Returns the relative links of a Markdown file that lead nowhere: to a missing file, or to a heading that the file
 * lacks. It does not check addresses on the web.
 */
export function checkLinks(root: string, file: string): Finding[] {
  const path = resolve(root, file);
  const findings: Finding[] = [];
  visit(parseMarkdown(readFileSync(path, "utf8")), ["link", "image", "definition"], (node) => {
    if (!("url" in node) || /^[a-z]+:/i.test(node.url)) return;
    const [target = "", anchor] = decodeURI(node.url).split("#");
    const destination = target === "" ? path : resolve(dirname(path), target);
    const message = linkFault(root, destination, anchor);
    if (message !== undefined) findings.push({ file, line: node.position?.start.line ?? 1, message });
  });
  return findings;
}

function linkFault(root: string, destination: string, anchor: string | undefined): string | undefined {
  const name = relative(root, destination);
  if (name.startsWith("..")) return `links to ${name}, which is outside of the repository`;
  if (!existsSync(destination)) return `links to ${name}, which does not exist`;
  if (anchor !== undefined && destination.endsWith(".md") && !anchorsOf(destination).has(anchor))
    return `links to ${name}#${anchor}, a heading that does not exist`;
  return undefined;
}

const anchorsByPath = new Map<string, ReadonlySet<string>>();

/** Anchors of a file's headings, as GitHub names them. */
function anchorsOf(path: string): ReadonlySet<string> {
  const known = anchorsByPath.get(path);
  if (known !== undefined) return known;
  const slugger = new GithubSlugger();
  const anchors = new Set<string>();
  visit(parseMarkdown(readFileSync(path, "utf8")), "heading", (node) => {
    anchors.add(slugger.slug(plainText(node)));
  });
  anchorsByPath.set(path, anchors);
  return anchors;
}

/** A path in code that names a file, from any folder on: `catalog/reader.ts`. */
const FILE = /^[\w@.-]+(?:\/[\w@.-]+)+\.(?:ts|mts|js|mjs|json|yaml|md|proto|binpb|txt)$/;

/** Returns the files that a Markdown file names in code and that the repository lacks. */
export function checkFileNames(file: string, text: string, repository: readonly string[]): Finding[] {
  const findings: Finding[] = [];
  visit(parseMarkdown(text), "inlineCode", (node) => {
    if (!FILE.test(node.value)) return;
    if (repository.some((known) => `/${known}`.endsWith(`/${node.value}`))) return;
    findings.push({
      file,
      line: node.position?.start.line ?? 1,
      message: `names ${node.value}, a file that does not exist`,
    });
  });
  return findings;
}

/** A file with tests, in code. */
const TEST_FILE = /^[\w@./-]+\.test\.ts$/;

/** Returns the rows of tables with "Test" as their last column that name no file with tests in it. */
export function checkTestColumns(file: string, text: string): Finding[] {
  const findings: Finding[] = [];
  visit(parseMarkdown(text), "table", ({ children: [header, ...rows] }) => {
    const last = header?.children.at(-1);
    if (last === undefined || plainText(last) !== "Test") return;
    for (const row of rows) {
      const named = row.children.at(-1)?.children ?? [];
      if (named.some((part) => part.type === "inlineCode" && TEST_FILE.test(part.value))) continue;
      findings.push({ file, line: row.position?.start.line ?? 1, message: "has a row without a test" });
    }
  });
  return findings;
}
