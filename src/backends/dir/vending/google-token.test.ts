import assert from "node:assert/strict";
import fc from "fast-check";
import { DownscopedClient } from "google-auth-library";
import { afterEach, describe, it, vi } from "vitest";
import { rolesFor } from "../../../../test/fixtures/dir/vending-boundary.ts";
import { isLanceError } from "../../../namespace/errors.ts";
import {
  type AccessBoundary,
  accessBoundary,
  type BoundaryScope,
  createGoogleSource,
} from "./google-token.ts";
import { PERMISSIONS } from "./vendor.ts";

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

describe("access boundary", () => {
  const SCOPE: BoundaryScope = { bucket: "lake", key: "root/t.lance", permission: "read" };

  /** Characters that could end a string of CEL, or begin an escape in it. */
  const characters = fc.constantFrom(...`'"\\u{}$*?:a.|&!()\n\r\u00e9\u4e2d\u{1f600}\u0001\u007f `);
  const segment = fc
    .array(characters, { minLength: 1, maxLength: 12 })
    .map((found) => found.join("").replaceAll("/", "_"));
  const keys = fc.array(segment, { minLength: 1, maxLength: 3 }).map((parts) => parts.join("/"));

  describe("the access boundary of a table", () => {
    it("leaves the roles of a permission, and no others", () => {
      const roles = PERMISSIONS.map((permission) => {
        const boundary = accessBoundary({ ...SCOPE, permission });
        return rolesFor(boundary, { bucket: "lake", object: "root/t.lance/data/x.lance" });
      });
      assert.deepEqual(roles, [
        ["objectViewer"],
        ["objectViewer", "objectCreator"],
        ["objectViewer", "objectUser"],
      ]);
    });

    it("reaches the objects of the table and no others, whatever its name contains", () => {
      fc.assert(
        fc.property(keys, keys, fc.constantFrom(...PERMISSIONS), (key, other, permission) => {
          const boundary = accessBoundary({ ...SCOPE, key, permission });
          const reads = (object: string) => rolesFor(boundary, { bucket: "lake", object }).length > 0;
          const lists = (prefix: string) => rolesFor(boundary, { bucket: "lake", prefix }).length > 0;
          assert.equal(reads(`${key}/data/x`), true);
          assert.equal(lists(`${key}/_versions/`), true);
          for (const near of [other, `${key}x/data`, `x${key}/data`, key, key.slice(0, -1), ""]) {
            assert.equal(reads(near), near.startsWith(`${key}/`), near);
            assert.equal(lists(near), near.startsWith(`${key}/`), near);
          }
        }),
      );
    });

    it("does not let a name end its string and add a condition", () => {
      const key = "a') || resource.name.startsWith('";
      const boundary = accessBoundary({ ...SCOPE, key });
      assert.deepEqual(rolesFor(boundary, { bucket: "lake", object: `${key}/x` }), ["objectViewer"]);
      assert.deepEqual(rolesFor(boundary, { bucket: "lake", object: "a" }), []);
      for (const { availabilityCondition } of boundary.accessBoundary.accessBoundaryRules)
        assert.equal(availabilityCondition.expression.split("'").length - 1, 8);
    });

    it("lists with the right to read alone", () => {
      const boundary = accessBoundary({ ...SCOPE, permission: "manage" });
      assert.deepEqual(rolesFor(boundary, { bucket: "lake", prefix: "root/t.lance/" }), ["objectViewer"]);
      assert.deepEqual(rolesFor(boundary, { bucket: "lake" }), []);
    });

    it("refuses another bucket", () => {
      const boundary = accessBoundary(SCOPE);
      for (const bucket of ["lak", "lakes", "other"])
        assert.deepEqual(rolesFor(boundary, { bucket, object: "root/t.lance/x" }), []);
    });

    it("keeps a writer from the marks of the catalog, which a manager may write", () => {
      const roles = (permission: BoundaryScope["permission"], name: string) =>
        rolesFor(accessBoundary({ ...SCOPE, permission }), {
          bucket: "lake",
          object: `root/t.lance/${name}`,
        });
      for (const mark of [".lance-deregistered", ".lance-reserved"]) {
        assert.deepEqual(roles("write", mark), ["objectViewer"]);
        assert.deepEqual(roles("manage", mark), ["objectViewer", "objectUser"]);
      }
    });

    it("refuses a table without a directory, and one whose name is too long for a condition", () => {
      assert.throws(
        () => accessBoundary({ ...SCOPE, key: "" }),
        (error) => isLanceError(error, "InvalidInput"),
      );
      assert.throws(
        () => accessBoundary({ ...SCOPE, key: "\u4e2d".repeat(200) }),
        (error) => isLanceError(error, "Unsupported"),
      );
    });
  });
});
