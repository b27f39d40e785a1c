import { openPage } from "../../test/browser/chromium.ts";
import { dropFile } from "../../test/browser/console-page.ts";

const NAMES = ["red shoes", "blue shirt", "green hat", "warm coat"];

/** The table that the file becomes, and the number of its rows. */
export const TABLE = "products";
export const ROWS = NAMES.length;

/** Drops a CSV file on the console of a gateway, imports it, and looks for rows like one of its own. */
export async function importAndSearch(uri: string): Promise<void> {
  const ends: (() => unknown)[] = [];
  const page = await openPage({ onTestFinished: (end) => void ends.push(() => end(undefined as never)) });
  try {
    await page.goto(uri);
    await page.getByText("Import a file").waitFor();
    const lines = ["id,name,vector", ...NAMES.map((name, id) => `${id},${name},"[${id}, 1, 0, ${-id}]"`)];
    await dropFile(page, `${TABLE}.csv`, lines.join("\n"));
    await page.getByRole("button", { name: "Import", exact: true }).click();
    await page.getByText(`1 to ${ROWS} of ${ROWS}`).waitFor();
    await page.getByRole("row", { name: "green hat" }).getByRole("button", { name: "like this" }).click();
    await page.getByText(new RegExp(`^${ROWS} rows in`)).waitFor();
    const [nearest] = await page.locator("tbody tr").allTextContents();
    if (nearest?.includes("green hat") !== true) throw new Error(`the search found ${nearest} first`);
  } finally {
    for (const end of ends.reverse()) await end();
  }
}
