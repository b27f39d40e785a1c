import assert from "node:assert/strict";
import fc from "fast-check";
import { test } from "vitest";
import { isLanceError } from "../../../../namespace/errors.ts";
import { checkExpression } from "./predicate.ts";

/** Half of the levels at which the engine's stack was seen to overflow (docs/adr/0034). */
const SAFE_LEVELS = 250;

/** A step that puts another level around an expression, `_`. */
const LEVELS: readonly string[] = [
  "_ + 1",
  "_||'a'",
  "_::bigint",
  "_ is null",
  "_ is not true",
  "_ = 1",
  "_ between 1 and 2",
  "x between _ and 2",
  "_ in (1, 2)",
  "_ not in (1)",
  "_ like 'a%'",
  "_[1]",
  "_.a",
  "_ is distinct from b",
  "not _",
  "- _",
  "(_)",
  "abs(_)",
  "coalesce(1, _, 2)",
  "cast(_ as int)",
  "case when b then _ end",
  "x in (1, _, 3)",
  "[_]",
  "coalesce(_ and b, c)",
  "coalesce((_ or b), c)",
  "(_ and b, c)",
  "(_ or b) is true",
];

/** A step that adds no level, because the engine balances the conditions. */
const CONDITIONS: readonly string[] = ["_ and b", "b or _", "_ AND c = 1 OR d"];

const SPACES = [" ", "  ", "\n", "\t", "\u00a0"];

test("an expression with more levels than the engine was measured for is refused, however they are written", () => {
  const step = fc.oneof(
    { weight: 20, arbitrary: fc.constantFrom(...LEVELS).map((form) => ({ form, levels: 1 })) },
    { weight: 1, arbitrary: fc.constantFrom(...CONDITIONS).map((form) => ({ form, levels: 0 })) },
  );
  // A few steps, each repeated, reach depths that single steps do not.
  const steps = fc.array(fc.tuple(step, fc.integer({ min: 1, max: 200 })), { minLength: 2, maxLength: 30 });
  let deep = 0;
  fc.assert(
    fc.property(steps, fc.constantFrom(...SPACES), (chosen, space) => {
      let [text, levels] = ["x", 0];
      for (const [{ form, levels: each }, times] of chosen) {
        for (let i = 0; i < times; i++) text = form.replace("_", () => text);
        levels += each * times;
      }
      if (levels <= SAFE_LEVELS) return;
      deep++;
      assert.throws(
        () => checkExpression(text.replaceAll(" ", space)),
        (error) => isLanceError(error, "InvalidInput"),
      );
    }),
    { numRuns: Number(process.env["SQL_BOUNDS_RUNS"] ?? 500) },
  );
  assert.ok(deep > 100);
});

test("conditions that AND and OR join pass, as long as each is short", () => {
  const leaf = fc.constantFrom(
    "a = 1",
    "not b",
    "c between 1 and 2",
    "d in (1, -2, 'x')",
    "lower(e) like 'a%'",
    "f is null",
  );
  const { condition } = fc.letrec<{ condition: string }>((tie) => ({
    condition: fc.oneof(
      { depthSize: "small", withCrossShrink: true },
      leaf,
      fc
        .tuple(fc.constantFrom(" and ", " or "), fc.array(tie("condition"), { minLength: 2, maxLength: 6 }))
        .map(([joint, parts]) => `(${parts.join(joint)})`),
      tie("condition").map((inner) => `not (${inner})`),
    ),
  }));
  fc.assert(
    fc.property(condition, (text) => checkExpression(text)),
    { numRuns: 300 },
  );
});
