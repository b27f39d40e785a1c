import { getOption } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { http } from "../gen/google/api/annotations_pb.ts";
import { rest_form, rest_method } from "../gen/lance/namespace/v1/options_pb.ts";
import { LanceNamespaceService } from "../gen/lance/namespace/v1/service_pb.ts";
import { optionOf } from "./option.ts";

test("gives each option of a descriptor as the library does, and decodes it once", () => {
  for (const method of LanceNamespaceService.methods) {
    expect(optionOf(method, http)).toEqual(getOption(method, http));
    expect(optionOf(method, rest_method)).toEqual(getOption(method, rest_method));
    expect(optionOf(method.input, rest_form)).toBe(getOption(method.input, rest_form));
    expect(optionOf(method, http)).toBe(optionOf(method, http));
  }
});
