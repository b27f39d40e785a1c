import assert from "node:assert/strict";
import { describe, it } from "vitest";
import { isLanceError } from "../../../../namespace/errors.ts";
import { atOnce } from "../../../../runtime/pace.ts";
import { predicateSteps } from "./predicate.ts";

const onePredicate = (predicate: string | undefined) => atOnce(predicateSteps(predicate));

describe("predicateSteps", () => {
  it("passes one expression, whatever its literals and quoted names hold", () => {
    for (const predicate of [
      "id > 1",
      "name = 'a;b'",
      "name = 'it''s; fine'",
      '"odd;name" = 1',
      "`odd;name` = 1",
    ]) {
      assert.equal(onePredicate(predicate), predicate);
    }
  });

  it("passes a missing predicate, and refuses a blank one", () => {
    assert.equal(onePredicate(undefined), undefined);
    for (const blank of ["", "  ", "\t\n"]) {
      assert.throws(
        () => onePredicate(blank),
        (error) => isLanceError(error, "InvalidInput"),
      );
    }
  });

  it("refuses a semicolon outside of quotes", () => {
    for (const predicate of ["id > 1; junk", "id > 1;", ";", "name = 'a' ; id > 1"]) {
      assert.throws(
        () => onePredicate(predicate),
        (error) => isLanceError(error, "InvalidInput"),
        predicate,
      );
    }
  });
});
