import assert from "node:assert/strict";
import { describe, it } from "vitest";
import { atOnce } from "../../runtime/pace.ts";
import { parsePolicies, policyParts } from "./read-policies.ts";
import { loadCedar } from "./schema.ts";

const TRICKY = [
  'permit (principal == User::"a;b", action, resource);',
  "// it's a \"comment; with everything\n",
  '@id("say \\"hi;\\" \\\\") forbid (principal, action, resource);\n',
  '@note("// no comment") permit (principal, action, resource) when { 1 == 4 / 2 };',
  "\n\n",
];

describe("a text of policies", () => {
  it("is split behind its policies alone", () => {
    const text = TRICKY.join("").repeat(3);
    const parts = [...policyParts(text, 1)];
    assert.equal(parts.map((part) => part.text).join(""), text);
    assert.equal(parts.length, 10);
    for (const [i, { line }] of parts.entries()) {
      const before = parts.slice(0, i).map((part) => part.text);
      assert.equal(line, before.join("").split("\n").length - 1);
    }
  });

  for (const [what, text] of [
    ["a string", 'permit ("; never; ends; \\'],
    ["a comment", "permit; // never; ends;"],
    ["nothing", ""],
  ] as const) {
    it(`that ends in ${what} keeps all of its text`, () => {
      const parts = [...policyParts(text, 1)].map((part) => part.text);
      assert.equal(parts.join(""), text);
    });
  }

  it("is parsed in steps, one for each policy, with names and places as in a single part", async () => {
    const cedar = await loadCedar();
    const policies = Array.from(
      { length: 2_000 },
      (_, i) => `permit (principal == User::"api-key:${i}", action, resource);\n`,
    );
    const steps = parsePolicies(cedar, policies.join(""), "a.cedar");
    let pauses = 0;
    let step = steps.next();
    for (; step.done !== true; step = steps.next()) pauses += 1;
    assert.ok(pauses > policies.length, `${pauses} pauses`);
    assert.deepEqual(
      step.value.policies.map(({ name }) => name),
      policies.map((_, i) => `a.cedar#${i + 1}`),
    );
    const broken = atOnce(
      parsePolicies(cedar, policies.with(1_900, "permit (principal, action resource);").join(""), "a.cedar"),
    );
    assert.match(broken.mistakes.join(), /^a\.cedar:1901: unexpected/);
  });
});
