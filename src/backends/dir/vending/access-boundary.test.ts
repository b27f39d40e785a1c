import assert from "node:assert/strict";
import fc from "fast-check";
import { describe, it } from "vitest";
import { rolesFor } from "../../../../test/fixtures/dir/vending-boundary.ts";
import { isLanceError } from "../../../namespace/errors.ts";
import { accessBoundary, type BoundaryScope } from "./access-boundary.ts";
import { PERMISSIONS } from "./vendor.ts";

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
      rolesFor(accessBoundary({ ...SCOPE, permission }), { bucket: "lake", object: `root/t.lance/${name}` });
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
