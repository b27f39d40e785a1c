import assert from "node:assert/strict";
import { describe, it } from "vitest";
import { ERROR_TABLE, errorEntryOfCode, LanceError, PUBLIC_ERROR_COUNT, toLanceError } from "./errors.ts";

describe("the error table", () => {
  it("has the 24 public codes first, in order", () => {
    const codes = ERROR_TABLE.slice(0, PUBLIC_ERROR_COUNT).map((entry) => entry.code);
    assert.deepEqual(
      codes,
      Array.from({ length: 24 }, (_, code) => code),
    );
  });

  it("gives every row a name and a type of its own", () => {
    assert.equal(new Set(ERROR_TABLE.map((entry) => entry.name)).size, ERROR_TABLE.length);
    assert.equal(new Set(ERROR_TABLE.map((entry) => entry.type)).size, ERROR_TABLE.length);
  });

  it("spells type and title from the name", () => {
    const { entry } = new LanceError("TableAlreadyExists", "t");
    assert.equal(entry.type, "/errors/table-already-exists");
    assert.equal(entry.title, "Table already exists");
  });

  it("takes an unknown code for Internal", () => {
    assert.equal(errorEntryOfCode(4).name, "TableNotFound");
    assert.equal(errorEntryOfCode(99).name, "Internal");
  });

  it("shows an unknown failure as an opaque Internal that keeps its cause", () => {
    const cause = new Error("secret path");
    const error = toLanceError(cause);
    assert.equal(error.entry.name, "Internal");
    assert.equal(error.cause, cause);
    assert.doesNotMatch(error.message, /secret/);
  });

  it("has whole characters only, also where a long text is cut, because gRPC-Web breaks off an answer with half of one", () => {
    const [half, long] = ["\ud83d", `${"x".repeat(1998)}\u{1f600}${"x".repeat(10)}`];
    for (const text of [half, long]) {
      const { message, detail, instance } = new LanceError("Internal", text, {
        detail: text,
        instance: text,
      });
      assert.deepEqual(
        [message, detail, instance].map((each) => each?.isWellFormed()),
        [true, true, true],
      );
    }
  });

  it("counts errors of another copy of the class as its own, and as none of a class that extends it", () => {
    class Narrow extends LanceError {}
    const error = new LanceError("TableNotFound", "it is gone");
    const copy = Object.assign(new Error("it is gone"), { [Symbol.for("lance-gateway.LanceError")]: true });
    assert.ok(copy instanceof LanceError);
    assert.ok(new Narrow("TableNotFound", "it is gone") instanceof Narrow);
    assert.ok(new Narrow("TableNotFound", "it is gone") instanceof LanceError);
    assert.ok(!(error instanceof Narrow));
    assert.ok(!(new Error("it is gone") instanceof LanceError));
  });
});
