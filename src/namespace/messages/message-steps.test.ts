import assert from "node:assert/strict";
import { create, fromBinary, toBinary, toJson } from "@bufbuild/protobuf";
import fc from "fast-check";
import { test } from "vitest";
import { FieldSchema } from "../../gen/lance/format/file_pb.ts";
import { DataFragmentSchema, ManifestSchema } from "../../gen/lance/format/table_pb.ts";
import { atOnce, ITEMS_PER_STEP, type Steps } from "../../runtime/pace.ts";
import {
  DECODED_PER_STEP,
  decodeSteps,
  encodeJsonSteps,
  encodeSteps,
  isLongMessage,
} from "./message-steps.ts";

/** Returns a manifest of several steps. */
function longManifest(): Uint8Array {
  const manifest = create(ManifestSchema, {
    version: 7n,
    fields: Array.from({ length: 3000 }, (_, id) =>
      create(FieldSchema, { id, name: `column ${id}`, metadata: { unit: Uint8Array.of(id % 256) } }),
    ),
    fragments: Array.from({ length: 5000 }, (_, i) =>
      create(DataFragmentSchema, { id: BigInt(i), files: [{ path: `${i}.lance`, fields: [1, 2] }] }),
    ),
    schemaMetadata: Object.fromEntries(
      Array.from({ length: 2000 }, (_, i) => [i === 7 ? "__proto__" : `key ${i}`, Uint8Array.of(1)]),
    ),
    config: { a: "b" },
    maxFragmentId: 0,
  });
  const start = toBinary(ManifestSchema, manifest);
  // Fields that were there already, whose single values replace the earlier ones, and fields that are not known.
  const end = toBinary(ManifestSchema, create(ManifestSchema, { version: 8n, config: { a: "c" } }));
  const unknown = Buffer.from([0xfa, 0x3f, 1, 5]);
  return Buffer.concat([unknown, start, unknown, end]);
}

test("decodes a long message in steps to what the library makes of it", () => {
  const bytes = longManifest();
  const [manifest, pauses] = counted(decodeSteps(ManifestSchema, bytes));
  assert.deepEqual(manifest, fromBinary(ManifestSchema, bytes));
  assert.ok(pauses + 1 >= bytes.length / (2 * DECODED_PER_STEP), `${pauses} pauses`);
});

test("decodes a message of a single long field", () => {
  const bytes = toBinary(ManifestSchema, create(ManifestSchema, { tag: "é".repeat(DECODED_PER_STEP) }));
  assert.deepEqual(atOnce(decodeSteps(ManifestSchema, bytes)), fromBinary(ManifestSchema, bytes));
  assert.deepEqual(atOnce(decodeSteps(ManifestSchema, new Uint8Array())), create(ManifestSchema));
});

test("refuses messages that end too early", () => {
  const bytes = longManifest();
  for (const end of [bytes.length - 1, DECODED_PER_STEP + 1, 7]) {
    const cut = bytes.subarray(0, end);
    assert.throws(() => fromBinary(ManifestSchema, cut));
    assert.throws(() => atOnce(decodeSteps(ManifestSchema, cut)));
  }
});

test("ends for any bytes, and refuses all that the library refuses", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      const expected = resultOf(() => fromBinary(FieldSchema, bytes));
      const found = resultOf(() => atOnce(decodeSteps(FieldSchema, bytes)));
      if (expected === undefined || found !== undefined) assert.deepEqual(found, expected);
    }),
  );
});

test("encodes a long message in steps without a change, and leaves it alone", () => {
  const manifest = fromBinary(ManifestSchema, longManifest());
  const [parts, pauses] = counted(encodeSteps(ManifestSchema, manifest));
  assert.deepEqual(fromBinary(ManifestSchema, Buffer.concat(parts)), manifest);
  assert.ok(pauses >= 10_000 / ITEMS_PER_STEP, `${pauses} pauses`);
  assert.deepEqual(manifest, fromBinary(ManifestSchema, longManifest()));
});

test("encodes protobuf's JSON in steps to what the library makes of it", () => {
  const manifest = fromBinary(ManifestSchema, longManifest());
  const { fields, schemaMetadata, config } = manifest;
  for (const init of [
    {},
    { version: 1n },
    { fields },
    { schemaMetadata },
    { fields, config },
    { fields: fields.slice(0, 3), schemaMetadata },
    manifest,
  ]) {
    const message = init === manifest ? manifest : create(ManifestSchema, init);
    const [pieces] = counted(encodeJsonSteps(ManifestSchema, message));
    assert.deepEqual(JSON.parse(Buffer.concat(pieces).toString()), toJson(ManifestSchema, message));
  }
  assert.ok(counted(encodeJsonSteps(ManifestSchema, manifest))[1] >= 10_000 / ITEMS_PER_STEP);
});

test("a message is long if a list or a map of it is", () => {
  const manifest = fromBinary(ManifestSchema, longManifest());
  assert.ok(isLongMessage(ManifestSchema, manifest));
  assert.ok(
    isLongMessage(ManifestSchema, create(ManifestSchema, { schemaMetadata: manifest.schemaMetadata })),
  );
  assert.ok(!isLongMessage(ManifestSchema, create(ManifestSchema, { config: { a: "b" } })));
});

test("encodes a message without long lists as the library does", () => {
  const manifest = create(ManifestSchema, { version: 7n, fields: [{ name: "a" }], config: { a: "b" } });
  manifest.$unknown = [{ no: 1000, wireType: 0, data: Uint8Array.of(5) }];
  assert.deepEqual(atOnce(encodeSteps(ManifestSchema, manifest)), [toBinary(ManifestSchema, manifest)]);
});

/** Runs steps, and returns their result and the number of pauses between them. */
function counted<T>(steps: Steps<T>): [T, number] {
  let [pauses, step] = [0, steps.next()];
  for (; !step.done; step = steps.next()) pauses++;
  return [step.value, pauses];
}

function resultOf<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch {
    return undefined;
  }
}
