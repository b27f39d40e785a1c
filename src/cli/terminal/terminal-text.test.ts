import assert from "node:assert/strict";
import { test } from "vitest";
import { forTerminal, rowsFor } from "./terminal-text.ts";

test("a text for the terminal keeps lines and letters, and loses what commands, reorders or hides", () => {
  const hostile = "a\u001b[2Jb\u009b1mc\u0007d\r\u202ee\u2066f";
  assert.equal(forTerminal(hostile), "a [2Jb 1mc d  e f");
  assert.equal(forTerminal("zwei\n\tZeilen: ümlaut 表 👩‍👩‍👧"), "zwei\n\tZeilen: ümlaut 表 👩‍👩‍👧");
});

test("rows do nothing to a terminal, and a file gets them as they are", () => {
  const rows = Buffer.from('name\n"a\u001b[2Jb\u009d0;c"\n表\n');
  assert.equal(rowsFor({ isTTY: true }, rows), 'name\n"a [2Jb 0;c"\n表\n');
  assert.equal(rowsFor({ isTTY: false }, rows), rows);
  assert.equal(rowsFor({}, rows), rows);
});
