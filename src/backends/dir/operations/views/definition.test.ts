import assert from "node:assert/strict";
import { test } from "vitest";
import { ID } from "../../../../../test/fixtures/dir/views.ts";
import { isLanceError } from "../../../../namespace/errors.ts";
import { readOutputSchema } from "./definition.ts";

test("the schema of a view may be wrapped into lines, and a text that is not base64 is looked at once", async () => {
  const text = ID.toString("base64");
  const wrapped = `${text.slice(0, 8)}\r\n${text.slice(8)}\n`;
  assert.equal((await readOutputSchema(wrapped, 1024 * 1024)).schema.fields[0]?.name, "id");
  for (const wrong of [`${" ".repeat(500_000)}!`, `${"A ".repeat(250_000)}=!`, "", " "]) {
    await assert.rejects(readOutputSchema(wrong, 1024 * 1024), (error) =>
      isLanceError(error, "InvalidInput"),
    );
  }
});
