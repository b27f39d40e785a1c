import { existsSync, globSync, readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, extname, join, relative, resolve } from "node:path";
import { visit } from "unist-util-visit";
import { parseMarkdown } from "../prose/markdown.ts";

/** Everything that the site consists of, by paths relative to the repository. */
export interface SitePages {
  /** Markdown by path. */
  readonly pages: ReadonlyMap<string, string>;
  /** Files that pages show as they are. */
  readonly images: ReadonlySet<string>;
  /** Whole pages of HTML to which others link. */
  readonly reports: ReadonlySet<string>;
}

/** Pages that need no link to be part of the site. */
const FIRST = ["*.md", "docs/**/*.md"];

/**
 * Collects the pages of the documentation, and everything in the repository to which they link: a file of code becomes a
 * page that shows it, and a folder becomes a page that lists it.
 */
export function collectPages(root: string): SitePages {
  const pages = new Map<string, string>();
  const images = new Set<string>();
  const reports = new Set<string>();
  const waiting = globSync(FIRST, { cwd: root });
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    if (pages.has(pageOf(root, path))) continue;
    const { text, targets } = withPageLinks(root, path, sourceOf(root, path));
    pages.set(pageOf(root, path), text);
    for (const target of targets) {
      if (IMAGES.has(extname(target))) images.add(target);
      else if (isReport(target)) reports.add(target);
      else waiting.push(target);
    }
  }
  return { pages, images, reports };
}

const IMAGES = new Set([".png", ".svg", ".jpg"]);

const isReport = (path: string) => extname(path) === ".html";

/** The page that shows a file or a folder. */
function pageOf(root: string, path: string): string {
  if (path.endsWith(".md") || IMAGES.has(extname(path)) || isReport(path)) return path;
  if (!statSync(join(root, path)).isDirectory()) return `${path}.md`;
  return existsSync(join(root, path, "README.md")) ? join(path, "README.md") : join(path, "files.md");
}

function sourceOf(root: string, path: string): string {
  const page = pageOf(root, path);
  if (existsSync(join(root, page))) return readFileSync(join(root, page), "utf8");
  const heading = `# \`${path}\`\n\n`;
  if (statSync(join(root, path)).isDirectory()) {
    const names = readdirSync(join(root, path)).sort();
    return `${heading}${names.map((name) => `- [${name}](${name})`).join("\n")}\n`;
  }
  return `${heading}\`\`\`\`${extname(path).slice(1)}\n${readFileSync(join(root, path), "utf8")}\`\`\`\`\n`;
}

/** Aims the links of a page to files of the repository at the pages that show these, and returns the files. */
function withPageLinks(root: string, path: string, source: string) {
  const from = dirname(pageOf(root, path));
  const targets: string[] = [];
  const edits: { readonly at: number; readonly old: string; readonly url: string }[] = [];
  visit(parseMarkdown(source), ["link", "image", "definition"], (node) => {
    if (!("url" in node) || /^(?:[a-z]+:|#|$)/i.test(node.url)) return;
    const [file = "", anchor] = node.url.split("#");
    const target = relative(root, resolve(root, from, decodeURI(file)));
    if (!existsSync(join(root, target))) throw new Error(`${path} links to ${target}, which does not exist`);
    targets.push(target);
    const url = relative(from, pageOf(root, target)) + (anchor === undefined ? "" : `#${anchor}`);
    const { start, end } = node.position ?? {};
    const at = source.lastIndexOf(node.url, end?.offset);
    if (at < (start?.offset ?? 0)) throw new Error(`${path} has a link to ${node.url} that was not found`);
    edits.push({ at, old: node.url, url });
    // Otherwise the site would look for a page of its own.
    if (isReport(target)) edits.push({ at: end?.offset ?? at, old: "", url: '{target="_self"}' });
  });
  const text = edits
    .toSorted((a, b) => b.at - a.at)
    .reduce((all, { at, old, url }) => all.slice(0, at) + url + all.slice(at + old.length), source);
  return { text, targets };
}
