import assert from "node:assert/strict";
import { describe, it } from "vitest";
import type { Principal } from "../../namespace/call/principal.ts";
import type { Keys } from "./key-set.ts";
import { createVerifiedTokens } from "./verified-tokens.ts";

const keys: Keys = { find: () => assert.fail() };
const named = (name: string): Principal => ({
  ...{ by: "oidc", name, credentialId: name, role: "none", groups: [], claims: {} },
});
const valid = (name: string) => ({
  ...{ principal: named(name), expiresAt: Date.now() + 600_000, keys, current: () => keys },
});

describe("the memory of verified tokens", () => {
  it("forgets the token first that was used longest ago", () => {
    const tokens = createVerifiedTokens({ maxTokens: 2 });
    for (const name of ["a", "b"]) tokens.add(name, valid(name));
    assert.equal(tokens.find("a")?.name, "a");
    tokens.add("c", valid("c"));
    assert.deepEqual(
      ["a", "b", "c"].map((token) => tokens.find(token)?.name),
      ["a", undefined, "c"],
    );
  });

  it("is bounded by the length of all tokens, however often they are verified and used", () => {
    const tokens = createVerifiedTokens({ maxCharacters: 10 });
    for (let turn = 0; turn < 100; turn += 1) {
      tokens.add("aaaa", valid("a"));
      assert.equal(tokens.find("aaaa")?.name, "a");
    }
    tokens.add("bbbb", valid("b"));
    assert.equal(tokens.find("aaaa")?.name, "a");
    tokens.add("cccc", valid("c"));
    assert.equal(tokens.find("bbbb"), undefined);
    assert.equal(tokens.find("cccc")?.name, "c");
  });

  it("gives a token up with the keys of its issuer", () => {
    const tokens = createVerifiedTokens();
    let current: Keys | undefined = keys;
    tokens.add("a", { ...valid("a"), current: () => current });
    assert.equal(tokens.find("a")?.name, "a");
    current = undefined;
    assert.equal(tokens.find("a"), undefined);
  });
});
