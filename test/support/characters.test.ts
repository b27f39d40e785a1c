import fc from "fast-check";
import { expect, test } from "vitest";
import { codePoint } from "./characters.ts";

test("draws single code points and knows them again, except for surrogates", () => {
  fc.assert(
    fc.property(codePoint, (character) => {
      expect([...character]).toHaveLength(1);
      expect(character.isWellFormed()).toBe(true);
      expect(codePoint.canShrinkWithoutContext(character)).toBe(true);
    }),
  );
  for (const edge of ["\0", "\ud7ff", "\ue000", "\u{10ffff}"]) {
    expect(codePoint.canShrinkWithoutContext(edge), edge).toBe(true);
  }
  for (const other of ["", "ab", "\ud800", "\udfff", "\ud83d\ude00\u0301"]) {
    expect(codePoint.canShrinkWithoutContext(other), other).toBe(false);
  }
});
