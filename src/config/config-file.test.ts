import assert from "node:assert/strict";
import { describe, it } from "vitest";
import { nearest } from "./config-file.ts";

describe("nearest", () => {
  const known = ["port", "host", "log-level", "max-upload-size", "max-message-size"];

  it("finds a word in spite of letters that are swapped, missing, added or wrong", () => {
    for (const [word, meant] of [
      ["prot", "port"],
      ["hst", "host"],
      ["log-levell", "log-level"],
      ["loglevel", "log-level"],
      ["max-uplaod-sice", "max-upload-size"],
    ] as const) {
      assert.equal(nearest(word, known), meant);
    }
  });

  it("finds nothing where all words differ much", () => {
    assert.deepEqual(
      [nearest("nonsense", known), nearest("p", known), nearest("port", [])],
      [undefined, undefined, undefined],
    );
  });
});
