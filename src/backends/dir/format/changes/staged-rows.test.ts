import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { test } from "vitest";
import { DataFragmentSchema, ManifestSchema } from "../../../../gen/lance/format/table_pb.ts";
import { lacksValues } from "./staged-rows.ts";

const manifest = create(ManifestSchema, {
  fields: [
    { id: 0, parentId: -1 },
    { id: 2, parentId: -1 },
  ],
});

const fragment = (...fields: readonly number[]) =>
  create(DataFragmentSchema, { files: [{ fields: [...fields] }] });

test("a fragment lacks the values of a column that has got another type, whatever the other fragments have", () => {
  assert.equal(lacksValues(manifest, [fragment(0, 1)]), true);
  assert.equal(lacksValues(manifest, [fragment(0, 2), fragment(0, 1)]), true);
  assert.equal(lacksValues(manifest, [fragment(0, 2), fragment(0)]), false);
});
