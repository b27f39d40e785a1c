import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { test } from "vitest";
import { checkSite } from "../../scripts/site/check.ts";
import { readNavigation } from "../../scripts/site/navigation.ts";
import { collectPages } from "../../scripts/site/pages.ts";
import { rankInSearch } from "../../scripts/site/search.ts";
import { temporaryDirectory } from "../support/directory.ts";

interface Context {
  onTestFinished(finish: () => Promise<void>): void;
}

/** Returns a folder with the given files. */
async function folderOf(files: Readonly<Record<string, string>>, { onTestFinished }: Context) {
  const { path, remove } = await temporaryDirectory();
  onTestFinished(remove);
  for (const [name, text] of Object.entries(files)) {
    await mkdir(dirname(join(path, name)), { recursive: true });
    await writeFile(join(path, name), text);
  }
  return path;
}

test("files and folders to which a page links become pages", async (context) => {
  const root = await folderOf(
    {
      "docs/page.md": "[a](../src/a.ts) [all](../src) [b](../src#x) ![p](p.png) [web](https://example.org)",
      "docs/p.png": "",
      "src/a.ts": "const a = 1;\n",
    },
    context,
  );
  const { pages, images } = collectPages(root);
  assert.equal(
    pages.get("docs/page.md"),
    "[a](../src/a.ts.md) [all](../src/files.md) [b](../src/files.md#x) ![p](p.png) [web](https://example.org)",
  );
  assert.match(pages.get("src/a.ts.md") ?? "", /# `src\/a\.ts`\n\n````ts\nconst a = 1;\n````/);
  assert.match(pages.get("src/files.md") ?? "", /- \[a\.ts\]\(a\.ts\.md\)/);
  assert.deepEqual([...images], ["docs/p.png"]);
});

test("a report stays a page of its own, outside of the site's navigation", async (context) => {
  const root = await folderOf(
    { "docs/page.md": "See [the report](report.html).", "docs/report.html": "<p>a report</p>" },
    context,
  );
  const { pages, reports } = collectPages(root);
  assert.equal(pages.get("docs/page.md"), 'See [the report](report.html){target="_self"}.');
  assert.deepEqual([...pages.keys()], ["docs/page.md"]);
  assert.deepEqual([...reports], ["docs/report.html"]);
});

test("a link to a missing file stops the site", async (context) => {
  const root = await folderOf({ "docs/page.md": "[a](a.ts)" }, context);
  assert.throws(() => collectPages(root), /docs\/page\.md links to docs\/a\.ts, which does not exist/);
});

test("the start page is the navigation, and has to list every page", async (context) => {
  const root = await folderOf(
    {
      "docs/README.md": "# All\n\n## Run\n\n- [A page](a.md#part): text with [another](../README.md).\n",
      "docs/adr/README.md": "# Decisions\n\n- [1. First](0001-first.md)\n",
    },
    context,
  );
  const listed = ["docs/README.md", "docs/adr/0001-first.md", "README.md"];
  assert.deepEqual(readNavigation(root, listed), [
    {
      text: "Run",
      collapsed: false,
      items: [
        { text: "A page", link: "/docs/a.html#part" },
        { text: "another", link: "/README.html" },
      ],
    },
    {
      text: "Decisions",
      collapsed: true,
      items: [{ text: "1. First", link: "/docs/adr/0001-first.html" }],
    },
  ]);
  assert.throws(() => readNavigation(root, ["docs/b.md"]), /does not list docs\/b\.md/);
});

test("dead links, missing headings and addresses of others are findings", async (context) => {
  const folder = await folderOf(
    {
      "index.html": '<a href="/base/docs/a.html#there">a</a> <a href="#own">own</a> <h2 id="own">',
      "docs/a.html": '<a href="b.html">b</a> <a href="../index.html#gone">c</a> <h2 id="there">',
      "docs/c.html": '<script src="https://example.org/a.js"></script> <img src="/base/p.png">',
      "style.css": '@font-face { src: url("//example.org/font.woff2") } @import "https://example.org/x.css"',
    },
    context,
  );
  assert.deepEqual(checkSite(folder, "/base/").sort(), [
    "docs/a.html: links to ../index.html#gone, a heading that does not exist",
    "docs/a.html: links to b.html, which does not exist",
    "docs/c.html: loads https://example.org/a.js",
    "style.css: loads //example.org/font.woff2",
    "style.css: loads https://example.org/x.css",
  ]);
});

test("a search shows guides before references, and decisions and sources last", () => {
  const pages = [
    "/base/docs/how-to/s3.html#keys",
    "/base/docs/storage.html",
    "/base/docs/configuration.html#options",
    "/base/docs/adr/0018-object-stores.html",
    "/base/src/index.ts.html",
  ];
  const ranks = pages.map(rankInSearch);
  assert.deepEqual(
    ranks,
    ranks.toSorted((a, b) => b - a),
  );
  assert.equal(new Set(ranks).size, pages.length);
  // The browser has nothing but the text.
  assert.equal(new Function(`return (${rankInSearch})("${pages[0]}")`)(), ranks[0]);
});
