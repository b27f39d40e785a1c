import assert from "node:assert/strict";
import { describe, it } from "vitest";
import { parsePath, pathText } from "./object-path.ts";

describe("paths", () => {
  it("are names with slashes, or dollars as in the REST API", () => {
    assert.deepEqual(parsePath("team/people"), ["team", "people"]);
    assert.deepEqual(parsePath("team$people"), ["team", "people"]);
    for (const root of ["", "/", "$"]) assert.deepEqual(parsePath(root), []);
    assert.equal(pathText(["team", "people"]), "team/people");
    assert.equal(pathText([]), "/");
  });
});
