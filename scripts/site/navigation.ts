import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Nodes } from "mdast";
import { toString as plainText } from "mdast-util-to-string";
import { visit } from "unist-util-visit";
import { parseMarkdown } from "../prose/markdown.ts";

/** A part of the sidebar, as VitePress reads it. */
export interface SidebarSection {
  readonly text: string;
  readonly collapsed: boolean;
  readonly items: readonly { readonly text: string; readonly link: string }[];
}

/** The start page, whose headings and lists are the navigation, and the list of decisions. */
const START = "docs/README.md";
const RECORDS = "docs/adr/README.md";

/**
 * Reads the navigation from the start page of the documentation, so that both have the same order and titles.
 *
 * @throws Error if a page of the documentation is in neither list
 */
export function readNavigation(root: string, pages: Iterable<string>): SidebarSection[] {
  const records = {
    text: "Decisions",
    collapsed: true,
    items: linksOf(root, RECORDS).flatMap(({ items }) => items),
  };
  const sections = [...linksOf(root, START), records];
  const listed = new Set(sections.flatMap(({ items }) => items.map(({ link }) => link)));
  const missing = [...pages].filter(
    (page) => page.startsWith("docs/") && page !== START && !listed.has(`/${page.replace(/md$/, "html")}`),
  );
  if (missing.length > 0) throw new Error(`${START} does not list ${missing.join(", ")}`);
  return sections;
}

function linksOf(root: string, page: string): SidebarSection[] {
  const sections: { text: string; collapsed: boolean; items: { text: string; link: string }[] }[] = [];
  visit(parseMarkdown(readFileSync(join(root, page), "utf8")), ["heading", "listItem"], (node: Nodes) => {
    if (node.type === "heading") sections.push({ text: plainText(node), collapsed: false, items: [] });
    else
      visit(node, "link", ({ url, children }) => {
        const { pathname, hash } = new URL(url.replace(/\.md\b/, ".html"), `http://site/${page}`);
        sections.at(-1)?.items.push({ text: plainText(children), link: pathname + hash });
      });
  });
  return sections.filter(({ items }) => items.length > 0);
}
