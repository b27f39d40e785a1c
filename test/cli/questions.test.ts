import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { temporaryDirectory } from "../support/directory.ts";
import { runInTerminal } from "../support/terminal.ts";

/** Every command that loses something, and the question that a terminal is asked. */
const QUESTIONS = [
  ["drop people", "Remove the table people for good?"],
  ["drop team --namespace --cascade", "Remove the namespace team "],
  ["create team --mode overwrite", "Replace "],
  ["import rows.csv people --mode overwrite", "Replace the rows of people if it exists?"],
  ["branches delete people trial", "Delete the branch trial of people with its rows?"],
  ["tags update people first 2", "which keeps its version from being pruned, to version 2?"],
  ["tags delete people first", "which keeps its version from being pruned?"],
  ["index drop people by_id", "Drop the index by_id of people?"],
  ["gc --delete", "Remove what crashes left in "],
  ["optimize", "older than their retention, 7 days by default, for good?"],
  ["optimize --retention 1h", "older than --retention for good?"],
  ["sql DROP\\x20TABLE\\x20people", "Run DROP TABLE people, which changes or removes data?"],
] as const;

describe("a command that loses something asks on a terminal, and does nothing without a yes", () => {
  let folder: Awaited<ReturnType<typeof temporaryDirectory>>;
  beforeAll(async () => {
    folder = await temporaryDirectory();
    await mkdir(join(folder.path, "root"));
  });
  afterAll(() => folder.remove());

  it.each(QUESTIONS)("%s", (line, question) => {
    const words = line.split(" ").map((word) => word.replaceAll("\\x20", " "));
    const args = [...words, "--root", join(folder.path, "root")];
    const { shown, code } = runInTerminal(args, [["[y/N]", "n\r"]], { XDG_CONFIG_HOME: folder.path });
    // The terminal breaks lines.
    expect(shown.replaceAll(/\s+/g, " ")).toContain(question);
    expect(shown).toContain("nothing was done; --yes does it without asking");
    expect(code).toBe(1);
  });
});
