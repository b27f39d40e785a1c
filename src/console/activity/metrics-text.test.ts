import { expect, test } from "vitest";
import { parseMetrics } from "./metrics-text.ts";

test("lines with and without labels are read, and comments are not", () => {
  const text = [
    "# HELP a_total Something.",
    'a_total{code="OK",database="x \\"y\\" \\\\"} 3',
    "b 0.5 1700000000",
    'c_bucket{le="+Inf"} 7',
    "",
  ].join("\n");
  expect(parseMetrics(text)).toEqual([
    { name: "a_total", labels: { code: "OK", database: 'x "y" \\' }, value: 3 },
    { name: "b", labels: {}, value: 0.5 },
    { name: "c_bucket", labels: { le: "+Inf" }, value: 7 },
  ]);
});
