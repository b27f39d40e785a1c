import assert from "node:assert/strict";
import type { DescField } from "@bufbuild/protobuf";
import { beforeAll, describe, it } from "vitest";
import { LanceNamespaceService } from "../../src/gen/lance/namespace/v1/service_pb.ts";
import { createJsonDecoders } from "../../src/transcode/json/decode.ts";
import { createJsonEncoders } from "../../src/transcode/json/encode.ts";
import { createTranscoder } from "../../src/transcode/transcoder.ts";
import { findBinding } from "../support/bindings.ts";
import { type Agreement, compareWithDocument } from "./agreement.ts";
import { specOperations } from "./document.ts";
import { KNOWN_ADDITIONS, KNOWN_DIFFERENCES, KNOWN_UNMATCHED } from "./known.ts";
import { sampleOf } from "./sample.ts";

describe("the public OpenAPI document", () => {
  let agreement: Agreement;
  beforeAll(() => {
    agreement = compareWithDocument();
  });

  it("is walked as a whole", () => {
    const { operations, parameters, schemas, properties } = agreement.counts;
    assert.equal(operations, LanceNamespaceService.methods.length);
    assert.ok(parameters > 140 && schemas > 140 && properties > 700, JSON.stringify(agreement.counts));
  });

  it("agrees with the contract except for the known differences", () => {
    assert.deepEqual(agreement.differences.toSorted(), Object.keys(KNOWN_DIFFERENCES).sort());
  });

  it("has a message for each schema, except for the known ones", () => {
    assert.deepEqual(agreement.unmatched.toSorted(), Object.keys(KNOWN_UNMATCHED).sort());
  });

  it("lacks of the contract only what is known to be added", () => {
    assert.deepEqual(agreement.additions.toSorted(), Object.keys(KNOWN_ADDITIONS).sort());
  });
});

describe("full bodies after the public OpenAPI document", () => {
  const transcoder = createTranscoder([LanceNamespaceService]);
  const codecs = { decoders: createJsonDecoders(), encoders: createJsonEncoders() };

  for (const operation of specOperations) {
    const { input, output } =
      LanceNamespaceService.methods.find(({ name }) => name === operation.id) ?? assert.fail();
    const path = operation.path.replace("{id}", "text").replace("{index_name}", "text");
    const { binding, segments } = findBinding(transcoder, operation.httpMethod, path);
    const request =
      operation.request?.mediaType === "application/json" ? operation.request.schema : undefined;

    if (request !== undefined) {
      it(`${operation.id} reads its request without losing anything`, () => {
        const sample = sampleOf(request) as Record<string, unknown>;
        const message = binding.decode(segments, "", JSON.stringify(sample));
        const written = JSON.parse(codecs.encoders.message(input)(message));
        const isBare = request.properties === undefined;
        assert.deepEqual(isBare ? written.metadata : withoutIdentifier(written), sample);
      });
    }

    const body = operation.success.body;
    if (body?.mediaType === "application/json") {
      it(`${operation.id} writes its answer without losing anything`, () => {
        const sample = sampleOf(body.schema);
        const field = body.schema.properties === undefined ? bareField(output.fields) : undefined;
        const decode = codecs.decoders.message(output);
        // The decoder replaces the items of lists in place.
        const json = structuredClone(field === undefined ? sample : { [field.name]: sample });
        const message = decode(json, 0);
        assert.deepEqual(JSON.parse(binding.encode(message as never)), sample);
      });
    }
  }

  /** Returns the fields of the body, without the identifier, which comes from the path. */
  function withoutIdentifier({ identifier: _, ...rest }: Record<string, unknown>): unknown {
    return rest;
  }

  /** The field that makes up a bare answer: the one beside the context and the transaction. */
  function bareField(fields: readonly DescField[]): DescField {
    return fields.find(({ name }) => name !== "context" && name !== "transaction_id") ?? assert.fail();
  }
});
