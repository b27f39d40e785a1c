import assert from "node:assert/strict";
import { DownscopedClient } from "google-auth-library";
import { afterEach, describe, it, vi } from "vitest";
import { isLanceError } from "../../../namespace/errors.ts";
import { type AccessBoundary, accessBoundary } from "./access-boundary.ts";
import { createGoogleSource } from "./google-token.ts";

const KEY = { type: "service_account", client_email: "gateway@example.com", private_key: "not a real key" };
const storageOptions = { google_service_account_key: JSON.stringify(KEY) };
const SCOPE = { bucket: "lake", key: "root/t.lance", permission: "write" } as const;

/** Answers instead of the service; records the boundaries and the accounts that it is asked for. */
function answer(result: { token?: string; expirationTime?: number } | Error) {
  const asked: { boundary: AccessBoundary; email: string | undefined; leastLife: number }[] = [];
  vi.spyOn(DownscopedClient.prototype, "getAccessToken").mockImplementation(async function (this: unknown) {
    const { credentialAccessBoundary, authClient } = this as {
      readonly credentialAccessBoundary: AccessBoundary;
      readonly authClient: { readonly email?: string; readonly eagerRefreshThresholdMillis: number };
    };
    const { email, eagerRefreshThresholdMillis: leastLife } = authClient;
    asked.push({ boundary: credentialAccessBoundary, email, leastLife });
    if (result instanceof Error) throw result;
    return result as never;
  });
  return asked;
}

describe("tokens of Google", () => {
  afterEach(() => void vi.restoreAllMocks());

  it("are those of the service account, cut to the directory of the table", async () => {
    const asked = answer({ token: "ya29.cut", expirationTime: 123_000 });
    const { issue } = await createGoogleSource({ bucket: "lake", storageOptions });
    assert.deepEqual(await issue(SCOPE.key, SCOPE.permission), {
      value: { google_storage_token: "ya29.cut" },
      expiresAt: 123_000,
    });
    assert.deepEqual(asked, [
      { boundary: accessBoundary(SCOPE), email: KEY.client_email, leastLife: 30 * 60_000 },
    ]);
  });

  it("fail with the storage, and repeat nothing of what was sent", async () => {
    const { issue } = await createGoogleSource({ bucket: "lake", storageOptions });
    const denied = Object.assign(new Error("secret-1"), { code: "403", response: { status: 403 } });
    for (const result of [denied, {}, { token: "ya29.endless" }]) {
      answer(result);
      await assert.rejects(issue("t", "read"), (error) => {
        assert.ok(isLanceError(error, "ServiceUnavailable"));
        return !`${error.message} ${error.cause}`.includes("secret-1");
      });
      vi.restoreAllMocks();
    }
  });

  it("need a key that is JSON", async () => {
    const wrong = { google_service_account_key: "{" };
    await assert.rejects(
      createGoogleSource({ bucket: "lake", storageOptions: wrong }),
      /must be the JSON of a key/,
    );
  });
});
