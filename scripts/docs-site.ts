// Builds the documentation site into .cache/site/dist, by VitePress. It fails on a link that leads nowhere, on a page that the
// start page does not list, and on anything that a page loads from an address of others. Option: --base /PATH/, the path below
// which the site is served. Default: /
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { parseArgs } from "node:util";
import { npmTool } from "./npm-tool.ts";
import { checkSite } from "./site/check.ts";
import { readNavigation } from "./site/navigation.ts";
import { collectPages } from "./site/pages.ts";
import { rankInSearch } from "./site/search.ts";

const root = join(import.meta.dirname, "..");
const { base } = parseArgs({ options: { base: { type: "string", default: "/" } } }).values;
const program = npmTool("vitepress", "vitepress/bin/vitepress.js");
const site = join(root, ".cache", "site");
const dist = join(site, "dist");
const { description, version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));

/**
 * Room for the tables of options and figures, which are wider than text. From 1440 pixels on, VitePress takes the sidebar's width from
 * what the layout leaves of the window, so the layout must not be wider than the window.
 */
const STYLE = `
:root { --vp-layout-max-width: clamp(1440px, 100vw, 1680px); }
.VPDoc.has-aside .content-container { max-width: 1000px !important; }
.vp-doc th, .vp-doc td { padding: 6px 10px; vertical-align: top; font-size: 14px; line-height: 1.5; }
.vp-doc td { min-width: 5em; }
.vp-doc td:first-child { min-width: 12em; }
.vp-doc td code { overflow-wrap: anywhere; padding: 1px 4px; }
`;

function write(path: string, text: string): void {
  mkdirSync(dirname(join(site, path)), { recursive: true });
  writeFileSync(join(site, path), text);
}

rmSync(site, { recursive: true, force: true });
const { pages, images, reports } = collectPages(root);
for (const [path, text] of pages) write(path, text);
for (const path of images) cpSync(join(root, path), join(site, path));
for (const path of reports) cpSync(join(root, path), join(site, "public", path));
write("index.md", readFileSync(join(import.meta.dirname, "site", "home.md"), "utf8"));

const sidebar = readNavigation(root, pages.keys());
const config = {
  lang: "en",
  title: "Lance Gateway",
  description,
  base,
  outDir: "dist",
  ignoreDeadLinks: "localhostLinks",
  head: [["style", {}, STYLE]],
  vite: { esbuild: { tsconfigRaw: "{}" }, build: { chunkSizeWarningLimit: 4_000 } },
  themeConfig: {
    nav: [
      { text: "Start", link: "/docs/install.html" },
      { text: "Documentation", link: "/docs/README.html" },
      { text: version, link: "/CHANGELOG.html" },
    ],
    sidebar,
    outline: [2, 3],
    search: { provider: "local", options: { miniSearch: { searchOptions: {} } } },
  },
};
// Headings have the anchors that they have elsewhere, so that links to them work in both places.
const slugger = JSON.stringify(import.meta.resolve("github-slugger"));
write(
  ".vitepress/config.mjs",
  `import { slug as slugify } from ${slugger};
const config = ${JSON.stringify(config)};
config.themeConfig.search.options.miniSearch.searchOptions.boostDocument = ${rankInSearch};
export default { ...config, markdown: { anchor: { slugify } } };
`,
);
// VitePress loads Vue from where the pages are.
symlinkSync(dirname(dirname(dirname(program))), join(site, "node_modules"));
execFileSync(process.execPath, [program, "build", site], { cwd: site, stdio: "inherit" });

const findings = checkSite(dist, base);
for (const finding of findings) console.error(finding);
if (findings.length > 0) process.exit(1);
console.log(`The site has ${pages.size + 1} pages, in ${dist}`);
