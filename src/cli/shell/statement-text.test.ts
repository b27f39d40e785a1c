import { describe, expect, test } from "vitest";
import { isBlank, splitStatements } from "./statement-text.ts";

describe("the statements of a text", () => {
  test.each([
    ["SELECT 1", [], "SELECT 1"],
    ["SELECT 1; SELECT\n2;", ["SELECT 1", "SELECT\n2"], ""],
    [";;SELECT 1;", ["SELECT 1"], ""],
    ["SELECT ';', '''; ', 'open ;", [], "SELECT ';', '''; ', 'open ;"],
    ['SELECT "a;""b" FROM t; x', ['SELECT "a;""b" FROM t'], " x"],
    ["SELECT 1 -- a; b\n; y", ["SELECT 1 -- a; b"], " y"],
    ["SELECT 1 -- a; b", [], "SELECT 1 -- a; b"],
    ["SELECT /* ; */ 1; /* ;", ["SELECT /* ; */ 1"], " /* ;"],
    ["/* a /* ; */ ; DROP TABLE t; */ SELECT 1; x", ["/* a /* ; */ ; DROP TABLE t; */ SELECT 1"], " x"],
    ["/* a /* b */; DROP TABLE t;", [], "/* a /* b */; DROP TABLE t;"],
    ["SELECT E'a\\'; DROP TABLE t; --'; x", ["SELECT E'a\\'; DROP TABLE t; --'"], " x"],
    ["SELECT e'a\\'; DROP", [], "SELECT e'a\\'; DROP"],
    ["SELECT 1 -- a\r; y", ["SELECT 1 -- a"], " y"],
    ["SELECT $$;$$, $a$ ; $$ $a$; z", ["SELECT $$;$$, $a$ ; $$ $a$"], " z"],
    ["SELECT $a$ ;", [], "SELECT $a$ ;"],
    ["SELECT $1; SELECT 2", ["SELECT $1"], " SELECT 2"],
  ])("end at semicolons outside of quotes and comments: %s", (text, statements, rest) => {
    expect(splitStatements(text)).toEqual({ statements, rest });
  });

  test("comments alone are none", () => {
    expect(isBlank(" -- a\n/* b */ ")).toBe(true);
    expect(isBlank("/* a /* b */ */")).toBe(true);
    expect(isBlank("-- a\n1")).toBe(false);
    expect(isBlank("-- a\r1")).toBe(false);
    expect(isBlank("/* a")).toBe(false);
  });
});
