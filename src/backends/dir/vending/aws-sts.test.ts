import assert from "node:assert/strict";
import fc from "fast-check";
import { describe, it } from "vitest";
import { evaluate } from "../../../../test/fixtures/dir/vending-policy.ts";
import { isLanceError } from "../../../namespace/errors.ts";
import { type PolicyScope, sessionPolicy } from "./aws-sts.ts";
import { PERMISSIONS } from "./vendor.ts";

const SCOPE: PolicyScope = { partition: "aws", bucket: "lake", key: "root/t.lance", permission: "read" };

/** Names of everything that a policy could take for a wildcard, a variable or the end of a string. */
const characters = fc.constantFrom(...`*?\${}"'\\/:a.$\u00e9\u4e2d\u{1f600}\u0001\u007f `);
const segment = fc
  .array(characters, { minLength: 1, maxLength: 12 })
  .map((found) => found.join("").replaceAll("/", "_"));
const keys = fc.array(segment, { minLength: 1, maxLength: 3 }).map((parts) => parts.join("/"));
const permissions = fc.constantFrom(...PERMISSIONS);

describe("the session policy of a table", () => {
  it("allows what a permission includes, and nothing else", () => {
    const allowed = PERMISSIONS.map((permission) => {
      const policy = sessionPolicy({ ...SCOPE, permission });
      return ["GetObject", "PutObject", "AbortMultipartUpload", "DeleteObject", "PutObjectAcl", "ListBucket"]
        .map((name) => `s3:${name}`)
        .filter((action) => {
          const isList = action === "s3:ListBucket";
          const resource = isList ? "arn:aws:s3:::lake" : "arn:aws:s3:::lake/root/t.lance/data/x.lance";
          return evaluate(policy, action, resource, { "s3:prefix": "root/t.lance/data/" });
        });
    });
    const write = ["s3:GetObject", "s3:PutObject", "s3:AbortMultipartUpload"];
    assert.deepEqual(allowed, [
      ["s3:GetObject", "s3:ListBucket"],
      [...write, "s3:ListBucket"],
      [...write, "s3:DeleteObject", "s3:ListBucket"],
    ]);
  });

  it("reaches the objects of the table and no others, whatever its name contains", () => {
    fc.assert(
      fc.property(keys, keys, permissions, (key, other, permission) => {
        const policy = sessionPolicy({ ...SCOPE, key, permission });
        const reads = (object: string) => evaluate(policy, "s3:GetObject", `arn:aws:s3:::lake/${object}`);
        const lists = (prefix: string) =>
          evaluate(policy, "s3:ListBucket", "arn:aws:s3:::lake", { "s3:prefix": prefix });
        assert.equal(reads(`${key}/data/x`), true);
        assert.equal(lists(`${key}/_versions/`), true);
        for (const near of [other, `${key}x/data`, `x${key}/data`, key, key.slice(0, -1), ""]) {
          assert.equal(reads(near), near.startsWith(`${key}/`), near);
          assert.equal(lists(near), near.startsWith(`${key}/`), near);
        }
      }),
    );
  });

  it("does not let a wildcard or a variable in a name match the directory of another table", () => {
    const cases = [
      ["a*", "ab"],
      ["a?", "ab"],
      ["*", "other"],
      [`\${aws:username}`, "root"],
      [`\${s3:prefix}`, "root"],
      ["a$", "a$b"],
      ['"],"Resource":["*', "other"],
    ];
    for (const [key = "", other] of cases) {
      const policy = sessionPolicy({ ...SCOPE, key });
      assert.equal(evaluate(policy, "s3:GetObject", `arn:aws:s3:::lake/${key}/x`), true, key);
      assert.equal(evaluate(policy, "s3:GetObject", `arn:aws:s3:::lake/${other}/x`), false, key);
    }
  });

  it("refuses another bucket, also by the name of the bucket alone", () => {
    const policy = sessionPolicy(SCOPE);
    for (const bucket of ["lak", "lakes", "other"]) {
      assert.equal(evaluate(policy, "s3:GetObject", `arn:aws:s3:::${bucket}/root/t.lance/x`), false);
      const prefix = { "s3:prefix": "root/t.lance/" };
      assert.equal(evaluate(policy, "s3:ListBucket", `arn:aws:s3:::${bucket}`, prefix), false);
    }
    assert.equal(evaluate(policy, "s3:ListBucket", "arn:aws:s3:::lake"), false);
  });

  it("keeps a writer from the marks of the catalog, which a manager may write", () => {
    const writes = (permission: PolicyScope["permission"], name: string) =>
      evaluate(
        sessionPolicy({ ...SCOPE, permission }),
        "s3:PutObject",
        `arn:aws:s3:::lake/root/t.lance/${name}`,
      );
    for (const mark of [".lance-deregistered", ".lance-reserved"]) {
      assert.equal(writes("write", mark), false);
      assert.equal(writes("manage", mark), true);
    }
    assert.equal(writes("write", "_versions/1.manifest"), true);
  });

  it("consists of the characters that STS accepts", () => {
    fc.assert(
      fc.property(keys, (key) => {
        assert.match(sessionPolicy({ ...SCOPE, key }), /^[\x20-\x7e]+$/);
      }),
    );
  });

  it("names the partition of the role", () => {
    assert.match(sessionPolicy({ ...SCOPE, partition: "aws-cn" }), /"arn:aws-cn:s3:::lake\/root/);
  });

  it("refuses a table without a directory, and one whose name is too long for a policy", () => {
    assert.throws(
      () => sessionPolicy({ ...SCOPE, key: "" }),
      (error) => isLanceError(error, "InvalidInput"),
    );
    assert.throws(
      () => sessionPolicy({ ...SCOPE, key: "x".repeat(1000) }),
      (error) => isLanceError(error, "Unsupported"),
    );
  });
});
