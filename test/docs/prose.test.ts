import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished, test } from "vitest";
import { checkFileNames, checkLinks, checkTestColumns } from "../../scripts/prose/links.ts";
import { lintMarkdown } from "../../scripts/prose/lint.ts";
import { checkRecordLength, checkRecordReferences } from "../../scripts/prose/records.ts";
import { lintSource } from "../../scripts/prose/source.ts";

test("reports an opening without a subject, with the line of its sentence", () => {
  const findings = lintMarkdown("page.md", "# Title\n\nThe gateway waits.\nOne that fails is retried.\n");
  assert.deepEqual(
    findings.map(({ file, line, message }) => [file, line, message.split(":")[0]]),
    [["page.md", 4, '"One"']],
  );
});

test("accepts the opening in a heading, in a question and within a line break of a sentence", () => {
  assert.deepEqual(
    lintMarkdown("page.md", "# What is tested\n\nWhat fails? It returns\nthe same row.\n"),
    [],
  );
});

test("reports a listed phrase in a paragraph, a heading and the cell of a table", () => {
  const text = "# It shall wait\n\nIt is no file.\n\n| Case | Result |\n| --- | --- |\n| a | settled |\n";
  assert.deepEqual(
    lintMarkdown("page.md", text).map(({ line }) => line),
    [1, 3, 7],
  );
});

test("accepts listed words in code and in quotation marks", () => {
  assert.deepEqual(
    lintMarkdown("page.md", 'The hook `settle` runs. The message says "it shall wait".\n'),
    [],
  );
});

test("reports phrases in comments and test titles of a source, and leaves its code alone", () => {
  const source = [
    "/**",
    " * Returns the row.",
    " * Whoever asks gets it.",
    " */",
    "const shall = 1;",
    "// It shall",
    "// wait.",
    'test("one that fails is retried", () => {});',
  ].join("\n");
  assert.deepEqual(
    lintSource("a.ts", source).map(({ line, message }) => [line, message.split(":")[0]]),
    [
      [3, '"Whoever"'],
      [3, '"Whoever"'],
      [6, '"shall"'],
      [8, '"One"'],
    ],
  );
});

test("reports links to files and headings that do not exist", () => {
  const root = mkdtempSync(join(tmpdir(), "lance-gateway-links-"));
  onTestFinished(() => rmSync(root, { recursive: true }));
  writeFileSync(join(root, "other.md"), "# Two `words`\n");
  writeFileSync(
    join(root, "page.md"),
    "[a](other.md#two-words) [b](https://example.com/none) [c](#none)\n[d](none.md)\n[e](other.md#none)\n[f](../x)\n",
  );
  assert.deepEqual(
    checkLinks(root, "page.md").map(({ line }) => line),
    [1, 2, 3, 4],
  );
});

test("reports a file in code that the repository does not have, from any folder on", () => {
  const text = "`catalog/reader.ts` reads, `catalog/writer.ts` writes, `npm test` runs.\n";
  assert.deepEqual(
    checkFileNames("page.md", text, ["src/catalog/reader.ts"]).map(({ message }) => message),
    ["names catalog/writer.ts, a file that does not exist"],
  );
});

test("reports a row whose column of tests names no file with tests", () => {
  const rows = ["| a | `src/a.test.ts` |", "| b | |", "| c | `src/c.ts` |", "| d | x, `d.test.ts` |"];
  const text = `| Attack | Test |\n| --- | --- |\n${rows.join("\n")}\n\n| Other | Column |\n| --- | --- |\n| a | |\n`;
  assert.deepEqual(
    checkTestColumns("page.md", text).map(({ line }) => line),
    [4, 5],
  );
});

test("reports a decision record of more than 600 words, and no other page of that length", () => {
  const text = `# 7. Rows\n\n${"word ".repeat(598)}`;
  assert.deepEqual(checkRecordLength("docs/adr/0007-rows.md", text), []);
  assert.deepEqual(checkRecordLength("docs/rows.md", `${text} more`), []);
  assert.deepEqual(
    checkRecordLength("docs/adr/0007-rows.md", `${text} more`).map(({ message }) => message),
    ["has 601 words; a record has at most 600"],
  );
});

test("reports references to decision records that do not exist, by number and by file", () => {
  const gone = "0008";
  const text = `// ADR ${7}\n// ADR ${8}\n// docs/adr/${gone}-gone.md\n`;
  assert.deepEqual(
    checkRecordReferences("a.ts", text, ["docs/adr/0007-rows.md"]).map(({ line, message }) => [
      line,
      message,
    ]),
    [
      [2, `refers to ADR ${8}, a record that does not exist`],
      [3, `refers to adr/${gone}, a record that does not exist`],
    ],
  );
});
