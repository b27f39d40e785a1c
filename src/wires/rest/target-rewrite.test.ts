import { expect, test } from "vitest";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import { createTranscoder } from "../../transcode/transcoder.ts";
import { createTargetRewrite } from "../http-wires.ts";

const rewrite = createTargetRewrite([createTranscoder([LanceNamespaceService])]);

test("slashes around paths of REST are dropped, and no others", () => {
  for (const [target, expected] of [
    ["/v1/table/t/describe", "/v1/table/t/describe"],
    ["//v1/table/t/describe//?a=/", "/v1/table/t/describe?a=/"],
    ["/v1/table//t/", "/v1/table//t"],
    ["/v1/", "/v1"],
    ["/", "/"],
    ["/healthz/", "/healthz/"],
    ["//healthz", "//healthz"],
    ["/v10/", "/v10/"],
    [`/${"/".repeat(100_000)}v1`, "/v1"],
  ] as const) {
    expect(rewrite(target), target.slice(0, 50)).toBe(expected);
  }
});

test("a target always begins with a slash and has no fragment", () => {
  for (const [target, expected] of [
    ["*", "/*"],
    ["", "/"],
    ["v1/table", "/v1/table"],
    ["http://localhost/v1/table/?a", "/v1/table?a"],
    ["/v1/table/a#b/describe?c#d", "/v1/table/a%23b/describe?c#d"],
  ] as const) {
    expect(rewrite(target), target).toBe(expected);
  }
});
