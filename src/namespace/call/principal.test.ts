import assert from "node:assert/strict";
import { describe, it } from "vitest";
import { parseGrant } from "../../config/issuers.ts";
import { UsageError } from "../../config/option-spec.ts";
import { roleOf } from "./principal.ts";

const ann = {
  name: "ann",
  groups: ["data", "cn=ops,dc=example"],
  claims: {
    scope: "openid lance.read",
    scp: ["lance.write"],
    department: "research",
    realm_access: { roles: ["admin"] },
    "https://example.com/tier": 3,
    internal: true,
  },
};

describe("grants", () => {
  for (const [text, role] of [
    ["reader=anyone", "reader"],
    ["writer=group:data", "writer"],
    ["writer=group:cn=ops,dc=example", "writer"],
    ["writer=group:dat", "none"],
    ["writer=group:Data", "none"],
    ["owner=name:ann", "owner"],
    ["owner=name:data", "none"],
    ["reader=scope:lance.read", "reader"],
    ["writer=scope:lance.write", "writer"],
    ["writer=scope:lance", "none"],
    ["owner=claim:department=research", "owner"],
    ["owner=claim:realm_access.roles=admin", "owner"],
    ["owner=claim:https://example.com/tier=3", "owner"],
    ["owner=claim:internal=true", "owner"],
    ["owner=claim:constructor.name=Object", "none"],
    ["none=anyone", "none"],
  ] as const) {
    it(`of ${text} give the role ${role}`, () => {
      assert.equal(roleOf([parseGrant(text)], ann), role);
    });
  }

  it("give the mightiest role of all that apply, and without one nothing", () => {
    const grants = ["reader=anyone", "owner=name:bob", "writer=group:data"].map(parseGrant);
    assert.equal(roleOf(grants, ann), "writer");
    assert.equal(roleOf([], ann), "none");
  });

  it("are refused in any other form", () => {
    for (const text of [
      "",
      "king=anyone",
      "reader",
      "reader=",
      "reader=group:",
      "reader=everyone",
      "reader=claim:a",
    ])
      assert.throws(() => parseGrant(text), UsageError, text);
  });
});
