import assert from "node:assert/strict";
import { get } from "node:http";
import { describe, it } from "vitest";
import { failsWith } from "../../../../test/fixtures/dir/directory-backend.ts";
import { startFake } from "../../../../test/fixtures/dir/stores.ts";
import { type Action, allows, type Role } from "../../../namespace/call/principal.ts";
import { LanceError } from "../../../namespace/errors.ts";
import {
  type CredentialSource,
  createStaticSource,
  createVendor,
  type StaticOptions,
  type VendorOptions,
} from "./vendor.ts";

const LIFE = 3_600_000;

/** A source that numbers the credentials that it issues, and says for what. */
function countingSource(now: () => number) {
  const issued: string[] = [];
  const source: CredentialSource = {
    async issue(key, permission) {
      issued.push(`${permission} ${key}`);
      return { value: { aws_access_key_id: `key-${issued.length}` }, expiresAt: now() + LIFE };
    },
  };
  return { source, issued };
}

function open(options: Partial<VendorOptions> = {}) {
  const clock = { now: 0 };
  const { source, issued } = countingSource(() => clock.now);
  const vendor = createVendor({ source, most: "manage", now: () => clock.now, ...options });
  return { clock, issued, vendor };
}

const as = (role: Role) => ({ may: (action: Action) => allows({ role }, action) });

describe("a vendor whose service does not answer", () => {
  it("fails in time, frees the connection, and asks again for the next caller", async (t) => {
    const closed = Promise.withResolvers<void>();
    let requests = 0;
    const url = await startFake(t, (_, response) => {
      requests += 1;
      response.on("close", closed.resolve);
      if (requests > 1) response.end();
    });
    const source: CredentialSource = {
      issue: () =>
        new Promise((resolve, reject) => {
          get(url, () => resolve({ value: { aws_session_token: "a" }, expiresAt: LIFE })).on("error", reject);
        }),
    };
    const { vendor, clock } = open({ source, timeoutMs: 200 });
    await assert.rejects(vendor.vend(as("reader"), "t"), failsWith("ServiceUnavailable"));
    await closed.promise;
    clock.now += 60_000;
    assert.equal((await vendor.vend(as("reader"), "t"))["aws_session_token"], "a");
    assert.equal(requests, 2);
  });
});

describe("what a vendor hands out", () => {
  it("allows what the caller's role allows", async () => {
    const { vendor, issued } = open();
    for (const role of ["owner", "writer", "reader", "none"] as const) await vendor.vend(as(role), "t");
    assert.deepEqual(issued, ["manage t", "write t", "read t"]);
    assert.deepEqual(await vendor.vend(as("none"), "t"), {});
  });

  it("allows no more than the operator and the catalog allow", async () => {
    const { vendor, issued } = open({ most: "write" });
    await vendor.vend(as("owner"), "t");
    await vendor.vend(as("owner"), "t", "read");
    assert.deepEqual(issued, ["write t", "read t"]);
  });

  it("allows an external job to add files, and no more than the operator and the catalog do", async () => {
    for (const [most, least, ofCatalog, expected] of [
      ["manage", "write", undefined, "write t"],
      ["manage", "manage", undefined, "manage t"],
      ["write", "manage", undefined, "write t"],
      ["read", "write", undefined, "read t"],
      ["manage", "write", "read", "read t"],
    ] as const) {
      const { source, issued } = countingSource(() => 0);
      const vendor = createVendor({ source: { ...source, leastToAdd: () => least }, most, now: () => 0 });
      await vendor.vendForWork("t", ofCatalog);
      assert.deepEqual(issued, [expected]);
    }
  });

  it("gives nothing to a caller about whom nothing has decided, unless everyone may do everything", async () => {
    assert.deepEqual(await open().vendor.vend({}, "t"), {});
    const { vendor, issued } = open({ isOpen: true, most: "write" });
    await vendor.vend({}, "t");
    assert.deepEqual(issued, ["write t"]);
  });

  it("gives nothing to a caller who may write but not read", async () => {
    const { vendor, issued } = open();
    assert.deepEqual(await vendor.vend({ may: (action) => action === "write" }, "t"), {});
    assert.deepEqual(issued, []);
  });

  it("waits for a decision that takes a while", async () => {
    const { vendor, issued } = open();
    await vendor.vend({ may: async (action) => action === "read" }, "t");
    assert.deepEqual(issued, ["read t"]);
  });

  it("has credentials in every spelling, and their expiry", async () => {
    assert.deepEqual(await open().vendor.vend(as("reader"), "t"), {
      aws_access_key_id: "key-1",
      access_key_id: "key-1",
      expires_at_millis: String(LIFE),
    });
  });
});

describe("what a vendor keeps", () => {
  it("serves callers with the same permission for the same table until shortly before the expiry", async () => {
    const { clock, vendor, issued } = open();
    const first = await vendor.vend(as("reader"), "t");
    clock.now = LIFE - 5 * 60_000 - 1;
    assert.deepEqual(await vendor.vend(as("reader"), "t"), first);
    clock.now += 1;
    assert.notDeepEqual(await vendor.vend(as("reader"), "t"), first);
    assert.deepEqual(issued, ["read t", "read t"]);
  });

  it("gives nothing of it to a caller that has lost its permission", async () => {
    const { vendor } = open();
    let role: Role = "reader";
    const caller = { may: (action: Action) => allows({ role }, action) };
    assert.notDeepEqual(await vendor.vend(caller, "t"), {});
    role = "none";
    assert.deepEqual(await vendor.vend(caller, "t"), {});
  });

  it("never serves a caller with another permission, or for another table", async () => {
    const { vendor, issued } = open();
    const tables = ["t", "t2", 't","write'];
    for (let round = 0; round < 2; round++)
      for (const key of tables)
        for (const role of ["reader", "writer"] as const) await vendor.vend(as(role), key);
    assert.deepEqual(
      issued,
      tables.flatMap((key) => [`read ${key}`, `write ${key}`]),
    );
  });

  it("asks the source once for callers at the same time", async () => {
    const { vendor, issued } = open();
    await Promise.all(Array.from({ length: 8 }, () => vendor.vend(as("reader"), "t")));
    assert.equal(issued.length, 1);
  });

  it("is bounded", async () => {
    const { vendor, issued } = open({ maxKept: 2 });
    for (const key of ["a", "b", "c", "c", "a"]) await vendor.vend(as("reader"), key);
    assert.deepEqual(issued, ["read a", "read b", "read c", "read a"]);
  });

  it("passes the failure of the source on", async () => {
    const source: CredentialSource = {
      issue: () => Promise.reject(new LanceError("ServiceUnavailable", "no credentials")),
    };
    await assert.rejects(open({ source }).vendor.vend(as("reader"), "t"), /no credentials/);
  });
});

describe("static options", () => {
  const entry = (key: string, permission: StaticOptions["permission"]): StaticOptions => ({
    key,
    permission,
    options: { from: `${key} ${permission}` },
  });
  const source = createStaticSource([entry("a", "read"), entry("a", "manage"), entry("a/b", "write")]);

  it("are those of the closest directory, up to what the caller may have", async () => {
    const cases = [
      ["a/t", "read", "a read"],
      ["a/t", "write", "a read"],
      ["a/t", "manage", "a manage"],
      ["a/b/t", "read", "a read"],
      ["a/b/t", "write", "a/b write"],
    ] as const;
    for (const [key, permission, from] of cases)
      assert.deepEqual((await source.issue(key, permission)).value, { from }, `${key} ${permission}`);
  });

  it("are none for a table outside of all directories, also if its name begins alike", async () => {
    for (const key of ["ab/t", "a.lance", "b"])
      assert.deepEqual((await source.issue(key, "manage")).value, {});
  });

  it("give an external job those of the closest directory that add files, with as few other permissions as there are", async () => {
    const both = createStaticSource([entry("a", "write"), entry("a", "manage"), entry("", "manage")]);
    const vendors = [both, source].map((each) => createVendor({ source: each, most: "manage" }));
    const keys = ["a/t", "b/t", "a/b/t"];
    const given = vendors.map((each) => Promise.all(keys.map((key) => each.vendForWork(key))));
    assert.deepEqual(await Promise.all(given), [
      [{ from: "a write" }, { from: " manage" }, { from: "a write" }],
      [{ from: "a manage" }, {}, { from: "a/b write" }],
    ]);
  });

  it("have no expiry", async () => {
    const vendor = createVendor({ source, most: "read", isOpen: true });
    assert.deepEqual(await vendor.vend({}, "a/t"), { from: "a read" });
  });
});
