import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type OptionSpec, parseText, UsageError } from "../../config/option-spec.ts";
import { parsePath, pathText, splitArguments } from "./operands.ts";

const specs: Record<string, OptionSpec> = {
  filter: { flag: "filter", value: "SQL", help: "", parse: parseText },
  json: { flag: "json", help: "", parse: parseText },
};

describe("splitArguments", () => {
  it("tells operands from flags and their values", () => {
    const { operands, flags } = splitArguments(["--json", "a", "--filter", "x > 1", "b"], specs, "ONE [TWO]");
    assert.deepEqual(operands, ["a", "b"]);
    assert.deepEqual(flags, ["--json", "--filter", "x > 1"]);
    assert.deepEqual(splitArguments(["--filter=x", "a"], specs, "ONE").flags, ["--filter=x"]);
  });

  it("names what is missing or too many", () => {
    const fails = (args: string[], usage: string, message: RegExp) =>
      assert.throws(
        () => splitArguments(args, specs, usage),
        (error) => {
          return error instanceof UsageError && message.test(error.message);
        },
      );
    fails([], "ONE [TWO]", /^ONE is missing$/);
    fails(["a", "b", "c"], "ONE [TWO]", /^"c" is one argument too many$/);
    fails(["a"], "", /^"a" is one argument too many$/);
  });
});

describe("paths", () => {
  it("are names with slashes, or dollars as in the REST API", () => {
    assert.deepEqual(parsePath("team/people"), ["team", "people"]);
    assert.deepEqual(parsePath("team$people"), ["team", "people"]);
    for (const root of ["", "/", "$"]) assert.deepEqual(parsePath(root), []);
    assert.equal(pathText(["team", "people"]), "team/people");
    assert.equal(pathText([]), "/");
  });
});
