import { expect, test } from "vitest";
import { parsePlan } from "./plan.ts";

test("a plan is a tree by its indentation", () => {
  const text = [
    "ProjectionExec: expr=[id@0 as id]",
    "  GlobalLimitExec: skip=0, fetch=10",
    "    FilterExec: _distance@1 IS NOT NULL",
    "    Take: columns=[id]",
    "",
  ].join("\n");
  expect(parsePlan(text)).toEqual([
    {
      name: "ProjectionExec",
      detail: "expr=[id@0 as id]",
      inputs: [
        {
          name: "GlobalLimitExec",
          detail: "skip=0, fetch=10",
          inputs: [
            { name: "FilterExec", detail: "_distance@1 IS NOT NULL", inputs: [] },
            { name: "Take", detail: "columns=[id]", inputs: [] },
          ],
        },
      ],
    },
  ]);
});

test("a text that has no form of a plan is shown as it is", () => {
  expect(parsePlan("???")).toEqual([{ name: "???", detail: "", inputs: [] }]);
});
