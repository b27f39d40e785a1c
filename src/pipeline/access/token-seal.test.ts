import assert from "node:assert/strict";
import { describe, it } from "vitest";
import { ann } from "../../../test/fixtures/auth/principal.ts";
import { beginCall } from "../../../test/support/caller.ts";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import type { Call } from "../../namespace/call/call.ts";
import { isLanceError } from "../../namespace/errors.ts";
import { createTokenSeal } from "./token-seal.ts";

const { listTables, listNamespaces } = LanceNamespaceService.method;
const SECRET = "a secret of thirty-two characters";
const TOKEN = "next:salaries";
const call = beginCall(listTables, { principal: ann, id: ["team"] });

describe("a sealed page token", () => {
  it("opens with every gateway that has the secret, for the caller and the listing that it was made for", () => {
    const sealed = createTokenSeal(SECRET).seal(TOKEN, call);
    assert.equal(createTokenSeal(SECRET).open(sealed, { ...call, principal: { ...ann } }), TOKEN);
  });

  it("says nothing of the token, and is never the same", () => {
    const { seal } = createTokenSeal(SECRET);
    const sealed = seal(TOKEN, call);
    assert.notEqual(sealed, seal(TOKEN, call));
    assert.equal(Buffer.from(sealed.slice(1), "base64url").includes("salaries"), false);
  });

  it("is refused to others, elsewhere, under another secret, and when it was changed", () => {
    const { seal, open } = createTokenSeal(SECRET);
    const sealed = seal(TOKEN, call);
    const changes: Partial<Call>[] = [
      { principal: { ...ann, name: "bob" } },
      { principal: { ...ann, by: "oidc" } },
      { principal: undefined },
      { id: ["other"] },
      { database: "sales" },
      { method: listNamespaces },
    ];
    const isRefused = (error: unknown) => isLanceError(error, "InvalidInput");
    for (const change of changes) assert.throws(() => open(sealed, { ...call, ...change }), isRefused);
    assert.throws(() => createTokenSeal(`${SECRET}!`).open(sealed, call), isRefused);
    // Some bits of the last character mean nothing.
    const changed = sealed.replace(/.(?=.{4}$)/, (letter) => (letter === "A" ? "B" : "A"));
    for (const text of [changed, sealed.slice(0, 20), "$", "$x"])
      assert.throws(() => open(text, call), isRefused);
  });

  it("is not found in a name that the caller has written", () => {
    assert.equal(createTokenSeal(SECRET).open("people", call), undefined);
  });
});
