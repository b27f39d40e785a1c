import { execFileSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import axe from "axe-core";
import type { Page } from "playwright-core";

const ROOT = join(import.meta.dirname, "..", "..");
/** Pictures of the pages, for people to look at. */
const PICTURES = join(ROOT, ".cache", "console");

/** Sizes of windows, in pixels. */
export const DESK = { width: 1440, height: 900 };
export const TABLET = { width: 768, height: 1024 };
export const PHONE = { width: 390, height: 780 };

/** Builds the console that gateways serve. */
export function buildConsole(): void {
  execFileSync(process.execPath, [join(ROOT, "scripts", "build-console.ts")], { stdio: "inherit" });
}

/** Draws what a page shows, under a name. */
export async function takePicture(page: Page, name: string): Promise<void> {
  mkdirSync(PICTURES, { recursive: true });
  await page.screenshot({ path: join(PICTURES, `${name}.png`) });
}

/** Drops a file on the place for files of a page. */
export async function dropFile(page: Page, name: string, content: string | Uint8Array): Promise<void> {
  const base64 = Buffer.from(content).toString("base64");
  const dataTransfer = await page.evaluateHandle(`{
    const transfer = new DataTransfer();
    const bytes = Uint8Array.from(atob(${JSON.stringify(base64)}), (character) => character.charCodeAt(0));
    transfer.items.add(new File([bytes], ${JSON.stringify(name)}));
    transfer;
  }`);
  await page.locator(".drop-zone").dispatchEvent("drop", { dataTransfer });
}

interface AxeResult {
  readonly violations: readonly {
    readonly id: string;
    readonly nodes: readonly { readonly target: readonly string[]; readonly failureSummary?: string }[];
  }[];
}

/** Returns what axe finds wrong with a page, each with the elements. */
export async function violationsOf(page: Page): Promise<readonly string[]> {
  // The policy of the page forbids scripts of others, but not those of the debugger.
  await page.evaluate(axe.source);
  const { violations } = (await page.evaluate("axe.run()")) as AxeResult;
  return violations.map(
    ({ id, nodes }) => `${id}: ${nodes.map(({ target, failureSummary }) => `${target} ${failureSummary}`)}`,
  );
}

/** Whether the page as a whole scrolls sideways. */
export async function isTooWide(page: Page): Promise<boolean> {
  return (await page.evaluate("document.documentElement.scrollWidth > innerWidth")) === true;
}
