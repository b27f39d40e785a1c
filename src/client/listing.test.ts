import assert from "node:assert/strict";
import { test } from "vitest";
import { LanceError } from "../namespace/errors.ts";
import { createListing } from "./listing.ts";

test("a listing ends with an error where the server answers with the same page for ever", async () => {
  let pages = 0;
  const listing = createListing(async () => {
    pages += 1;
    return { tables: ["t"], pageToken: "next" };
  }, "tables");
  const seen: unknown[] = [];
  await assert.rejects(
    async () => {
      for await (const table of listing) seen.push(table);
    },
    (error) => error instanceof LanceError && error.is("ServiceUnavailable"),
  );
  assert.deepEqual([seen, pages], [["t", "t"], 2]);
});
