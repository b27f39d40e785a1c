import assert from "node:assert/strict";
import { test } from "vitest";
import { openFixture } from "../../../../../test/fixtures/dir/format.ts";
import { isLanceError } from "../../../../namespace/errors.ts";
import { readSegments } from "../files/index-section.ts";
import { readVersion } from "../versions/version-files.ts";
import { renameIndex } from "./index-entries.ts";
import { commitSegments } from "./index-segments.ts";

const { signal } = new AbortController();

/** A table with two indices of a column, whose types other writers have named in full or not at all. */
async function withIndices(typeUrl: string) {
  const dataset = openFixture("new");
  const { manifest } = await readVersion(dataset);
  const [{ id, name: column }] = manifest.fields as [(typeof manifest.fields)[number]];
  for (const [name, url] of [
    ["there", typeUrl],
    ["built", "/lance.index.pb.BloomFilterIndexDetails"],
  ] as const)
    await commitSegments(
      dataset,
      {
        name,
        column,
        segments: [
          {
            ...{ uuid: crypto.randomUUID(), fields: [id], datasetVersion: manifest.version },
            fragmentIds: manifest.fragments.map((fragment) => Number(fragment.id)),
            ...{ indexVersion: 0, typeUrl: url, details: new Uint8Array(), files: [] },
          },
        ],
      },
      signal,
    );
  const names = async () => (await readSegments(await readVersion(dataset))).map(({ name }) => name);
  const rename = () =>
    renameIndex(dataset, { from: "built", to: "there", replace: true, replaceable: "BloomFilter" }, signal);
  return { names, rename };
}

test("an index may replace one of the same type, whatever prefix and package its writer gives the type", async () => {
  for (const typeUrl of [
    "/lance.index.pb.BloomFilterIndexDetails",
    "type.googleapis.com/lance.index.pb.BloomFilterIndexDetails",
    "/lance.table.BloomFilterIndexDetails",
  ]) {
    const { names, rename } = await withIndices(typeUrl);
    await rename();
    assert.equal((await names()).filter((name) => name === "there").length, 1, typeUrl);
    assert.equal((await names()).includes("built"), false);
  }
});

test("an index that may replace one type alone replaces no other", async () => {
  for (const typeUrl of ["/lance.index.pb.BTreeIndexDetails", "/BloomFilters", ""]) {
    const { names, rename } = await withIndices(typeUrl);
    await assert.rejects(rename(), (error) => isLanceError(error, "Unsupported"));
    assert.equal((await names()).includes("built"), true, typeUrl);
  }
});
