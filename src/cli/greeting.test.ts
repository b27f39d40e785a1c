import { expect, test } from "vitest";
import { sourcesOf } from "../../test/support/command-line.ts";
import { readServeOptions } from "../config/serve-options.ts";
import type { Gateway } from "../gateway/compose.ts";
import { LanceNamespaceService } from "../gen/lance/namespace/v1/service_pb.ts";
import { greeting } from "./greeting.ts";

test("the greeting names the service as its descriptor does", () => {
  const address = { address: "127.0.0.1", family: "IPv4", port: 2333 };
  const gateway = { address, readOnly: [] } as unknown as Gateway;
  const text = greeting(readServeOptions(sourcesOf(["--root", "."])), undefined, gateway);
  expect(text).toContain(`  gRPC-Web  http://127.0.0.1:2333/${LanceNamespaceService.typeName}/\n`);
});
