import assert from "node:assert/strict";
import { mkdir, realpath, symlink } from "node:fs/promises";
import { join } from "node:path";
import { describe, it, type TestContext } from "vitest";
import { temporaryDirectory } from "../../../test/support/directory.ts";
import { isLanceError } from "../../namespace/errors.ts";
import { createLocationCheck } from "./storage-access.ts";

const asks = (location: string, hasCredentials = false) => ({ id: ["n", "t"], location, hasCredentials });

function refuses(check: ReturnType<typeof createLocationCheck>, location: string, hasCredentials = false) {
  assert.throws(
    () => check(asks(location, hasCredentials)),
    (error) => isLanceError(error, "PermissionDenied") && error.message.includes('"n$t"'),
    location,
  );
}

async function directory({ onTestFinished }: TestContext): Promise<string> {
  const { path, remove } = await temporaryDirectory();
  onTestFinished(remove);
  return realpath(path);
}

describe("the check of an upstream's locations", () => {
  it("allows nothing on a disk by default, and names the option", () => {
    const check = createLocationCheck([]);
    assert.throws(() => check(asks("/data/t.lance", true)), /--allowed-location/);
    refuses(check, "file:///data/t.lance");
  });

  it("allows places in buckets by default only with credentials of the upstream", () => {
    const check = createLocationCheck([]);
    assert.deepEqual(check(asks("s3://lake/a/t.lance", true)), { root: "s3://lake", key: "a/t.lance" });
    refuses(check, "s3://lake/a/t.lance");
  });

  it("allows what is below a directory, by its real path", async (t) => {
    const path = await directory(t);
    await mkdir(join(path, "real"));
    await symlink(join(path, "real"), join(path, "link"));
    const check = createLocationCheck([join(path, "link")]);
    const place = { root: "/", key: join(path, "real/t.lance").slice(1) };
    assert.deepEqual(check(asks(join(path, "link/t.lance"))), place);
    assert.deepEqual(check(asks(join(path, "real/t.lance"))), place);
    assert.deepEqual(check(asks(`file://${join(path, "real/t.lance")}`)), place);
    refuses(check, join(path, "link"));
    refuses(check, join(path, "other/t.lance"));
    refuses(check, join(path, "real-2/t.lance"));
  });

  it("refuses paths that lead elsewhere, and locations that are not plain", () => {
    const check = createLocationCheck(["/data", "s3://lake/tables"]);
    for (const location of [
      "/data/../etc/t.lance",
      "/data/./t.lance",
      "/data//t.lance",
      "data/t.lance",
      "/data/t\0.lance",
      "/",
      "file:///data/%2e%2e/etc",
      "file://host/data/t.lance",
      "s3://lake/tables/../other/t.lance",
      "s3://lake/tables/%2e%2e/other/t.lance",
      "s3://lake/tables",
      "s3://lake/tables-2/t.lance",
      "s3://lake2/tables/t.lance",
      "s3://lake",
      "gs://lake/tables/t.lance",
      "http://lake/tables/t.lance",
      "memory://lake/tables/t.lance",
      "s3://lake/tables/t.lance?x=1",
    ])
      refuses(check, location, true);
    assert.deepEqual(check(asks("s3://lake/tables/a/t.lance")), {
      root: "s3://lake",
      key: "tables/a/t.lance",
    });
  });

  it("refuses prefixes that are neither paths nor places in buckets", () => {
    assert.throws(() => createLocationCheck(["http://lake/tables"]), /--allowed-location/);
  });
});
