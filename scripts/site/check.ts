import { existsSync, globSync, readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";

/** Addresses from which a page loads something: of scripts, styles, fonts and pictures. A link for the reader is not among them. */
const LOADS =
  /<(?:script|img|iframe|source|video|audio)\b[^>]*\ssrc="([^"]+)"|<link\b[^>]*\shref="([^"]+)"|url\(["']?([^"')]+)|@import\s+["']([^"']+)/g;

/**
 * Checks the built site: each link leads to a page, and to a heading of it, and no page loads anything from an address of others.
 *
 * @param folder the built site
 * @param base the path below which it is served
 */
export function checkSite(folder: string, base: string): string[] {
  const pages = globSync("**/*.html", { cwd: folder });
  const findings: string[] = [];
  for (const page of pages) {
    const html = readFileSync(join(folder, page), "utf8");
    for (const [, href = ""] of html.matchAll(/<a\b[^>]*\shref="([^"]*)"/g)) {
      const fault = linkFault(folder, base, page, href.replaceAll("&amp;", "&"));
      if (fault !== undefined) findings.push(`${page}: ${fault}`);
    }
  }
  for (const file of [...pages, ...globSync("**/*.css", { cwd: folder })]) {
    const text = readFileSync(join(folder, file), "utf8");
    for (const [, ...addresses] of text.matchAll(LOADS))
      for (const address of addresses)
        if (address !== undefined && /^(?:[a-z]+:)?\/\//i.test(address))
          findings.push(`${file}: loads ${address}`);
  }
  return findings;
}

function linkFault(folder: string, base: string, page: string, href: string): string | undefined {
  if (/^[a-z]+:/i.test(href)) return undefined;
  const [path = "", anchor] = decodeURI(href).split("#");
  const target = path.startsWith(base)
    ? path.slice(base.length) || "index.html"
    : join(dirname(page), path || basename(page));
  if (!existsSync(join(folder, target))) return `links to ${href}, which does not exist`;
  if (!anchor || idsOf(join(folder, target)).has(anchor)) return undefined;
  return `links to ${href}, a heading that does not exist`;
}

const known = new Map<string, ReadonlySet<string>>();

function idsOf(path: string): ReadonlySet<string> {
  const ids =
    known.get(path) ??
    new Set([...readFileSync(path, "utf8").matchAll(/\sid="([^"]+)"/g)].map(([, id = ""]) => id));
  known.set(path, ids);
  return ids;
}
