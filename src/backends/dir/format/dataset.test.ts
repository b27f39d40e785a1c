import assert from "node:assert/strict";
import { describe, it } from "vitest";
import { isLanceError } from "../../../namespace/errors.ts";
import {
  checkTagName,
  keyOfManifestPath,
  manifestName,
  normalizeBranch,
  parseManifestName,
} from "./dataset.ts";

describe("names of manifests", () => {
  it("are those of the format in both schemes", () => {
    assert.equal(manifestName(1n, "V1"), "1.manifest");
    assert.equal(manifestName(1n, "V2"), "18446744073709551614.manifest");
    assert.equal(manifestName(18446744073709551615n, "V2"), "00000000000000000000.manifest");
  });

  it("are keys with or without a slash in front, of which one is not a part", () => {
    for (const [path, key] of [
      ["t.lance/_versions/1.manifest-x", "t.lance/_versions/1.manifest-x"],
      ["/t.lance/_versions/1.manifest-x", "t.lance/_versions/1.manifest-x"],
      ["//t", "/t"],
      ["", ""],
    ] as const)
      assert.equal(keyOfManifestPath(path), key);
  });

  it("are parsed back", () => {
    for (const scheme of ["V1", "V2"] as const) {
      for (const version of [0n, 1n, 1234567890n]) {
        assert.deepEqual(parseManifestName(manifestName(version, scheme)), { version, scheme });
      }
    }
  });

  it("are distinguished from everything else in the directory", () => {
    const others = [
      "18446744073709551614.manifest-7c0f",
      "18446744073709551614.manifest#12",
      "d9223372036854775809.manifest",
      "latest_version_hint.json",
      ".manifest",
      "1.manifest.tmp",
      "99999999999999999999.manifest",
    ];
    for (const name of others) assert.equal(parseManifestName(name), undefined, name);
  });
});

describe("names of refs", () => {
  it("of the main branch are all equivalent", () => {
    for (const name of [undefined, "", "main"]) assert.equal(normalizeBranch(name), undefined);
  });

  it("may have letters of any script and, for branches, slashes", () => {
    assert.equal(normalizeBranch("feature/größe-1.x_y"), "feature/größe-1.x_y");
    assert.equal(checkTagName("v1.0-größe_"), "v1.0-größe_");
  });

  it("are invalid input if the format does not allow them", () => {
    const invalid = (error: unknown) => isLanceError(error, "InvalidInput");
    const branches = [
      "/a",
      "a/",
      ".",
      "./a",
      "a/./b",
      "a/.",
      "a//b",
      "../a",
      "a..b",
      "a\\b",
      "a b",
      "a%2Fb",
      "a.lock",
      "a$b",
    ];
    for (const name of branches) assert.throws(() => normalizeBranch(name), invalid, name);
    const tags = ["", "a/b", ".a", "a.", "a..b", "a.lock", "a b"];
    for (const name of tags) assert.throws(() => checkTagName(name), invalid, name);
  });
});
