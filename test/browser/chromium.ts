import { chromium, type Page } from "playwright-core";
import type { TestContext } from "vitest";

/** The browser to drive; Debian's package installs it here. */
const PROGRAM = process.env["CHROMIUM"] ?? "/usr/bin/chromium";

/** Opens an empty page of a browser of its own, with further arguments. An error that no script of the page catches fails the test. */
export async function openPage(
  t: Pick<TestContext, "onTestFinished">,
  ...further: readonly string[]
): Promise<Page> {
  // Chromium's own sandbox does not work for root, as which containers run.
  const browser = await chromium.launch({ executablePath: PROGRAM, args: ["--no-sandbox", ...further] });
  t.onTestFinished(() => browser.close());
  const page = await browser.newPage();
  const errors: Error[] = [];
  page.on("pageerror", (error) => errors.push(error));
  t.onTestFinished(() => {
    if (errors.length > 0) throw new AggregateError(errors, "the page threw");
  });
  return page;
}
