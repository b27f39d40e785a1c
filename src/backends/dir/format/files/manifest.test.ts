import assert from "node:assert/strict";
import { clone, create, toBinary } from "@bufbuild/protobuf";
import { test } from "vitest";
import {
  DataFragmentSchema,
  IndexMetadataSchema,
  ManifestSchema,
} from "../../../../gen/lance/format/table_pb.ts";
import { atOnce, ITEMS_PER_STEP } from "../../../../runtime/pace.ts";
import { copyMessage, copySteps } from "./manifest.ts";

const manifest = create(ManifestSchema, {
  version: 7n,
  fields: [{ id: 1, name: "a", parentId: -1, metadata: { k: Uint8Array.of(1, 2) } }],
  fragments: [create(DataFragmentSchema, { id: 3n, files: [{ path: "x", fields: [1] }] })],
  schemaMetadata: JSON.parse('{"__proto__": 1, "other": 2}', (_, value) =>
    typeof value === "number" ? Uint8Array.of(value) : value,
  ),
  config: { a: "b" },
  maxFragmentId: 0,
});
manifest.$unknown = [{ no: 99, wireType: 2, data: Uint8Array.of(1, 5) }];

test("a copy of a message equals the clone of the library, and is written alike", () => {
  const copy = copyMessage(manifest);
  assert.deepEqual(copy, clone(ManifestSchema, manifest));
  assert.deepEqual(toBinary(ManifestSchema, copy), toBinary(ManifestSchema, manifest));
  const index = create(IndexMetadataSchema, { name: "i", fields: [1], uuid: { uuid: Uint8Array.of(9) } });
  assert.deepEqual(copyMessage(index), clone(IndexMetadataSchema, index));
});

test("a copy that is made in steps equals one that is made at once", () => {
  assert.deepEqual(atOnce(copySteps(manifest)), copyMessage(manifest));
  const fragments = Array.from({ length: 2 * ITEMS_PER_STEP + 1 }, (_, i) =>
    create(DataFragmentSchema, { id: BigInt(i), files: [{ path: `${i}` }] }),
  );
  const long = create(ManifestSchema, { ...manifest, fragments });
  const steps = copySteps(long);
  assert.deepEqual([steps.next().done, steps.next().done], [false, false]);
  const last = steps.next();
  assert.ok(last.done);
  assert.deepEqual(last.value, copyMessage(long));
});

test("changes of a copy do not reach the message", () => {
  const before = toBinary(ManifestSchema, manifest);
  const copy = copyMessage(manifest);
  copy.version = 8n;
  copy.config["a"] = "c";
  (copy.fields[0] as (typeof copy.fields)[number]).metadata["k"] = Uint8Array.of(9);
  copy.fragments.pop();
  copy.maxFragmentId = undefined;
  assert.deepEqual(toBinary(ManifestSchema, manifest), before);
});
