import { expect, test } from "vitest";
import { sourcesOf } from "../../../test/support/command-line.ts";
import { readServeOptions } from "../../config/serve-options.ts";
import type { Gateway } from "../../gateway/compose.ts";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import { greeting } from "./greeting.ts";

test("the greeting names the service as its descriptor does", () => {
  const address = { address: "127.0.0.1", family: "IPv4", port: 2333 };
  const gateway = { address, readOnly: [] } as unknown as Gateway;
  const text = greeting(readServeOptions(sourcesOf(["--root", "."])), undefined, gateway);
  expect(text).toContain(`  gRPC-Web  http://127.0.0.1:2333/${LanceNamespaceService.typeName}/\n`);
});

test("the greeting names the place of each database, without credentials", () => {
  const address = { address: "127.0.0.1", family: "IPv4", port: 2333 };
  const gateway = { address, readOnly: [] } as unknown as Gateway;
  const optionsOf = (...args: readonly string[]) => readServeOptions(sourcesOf(args));
  const places = {
    disk: optionsOf("--root", "/srv/lance"),
    bucket: optionsOf("--root", "s3://key:secret@bucket/prefix"),
    upstream: optionsOf("--uri", "https://lance.example.com"),
    other: optionsOf("--address", "lance.example.com:443"),
  };
  const databases = {
    byName: new Map(Object.entries(places)),
    routes: [],
    pathPrefix: "/db",
    fallback: undefined,
  };
  const [first = ""] = greeting(optionsOf("--port", "0"), databases, gateway).split("\n");
  expect(first).toMatch(
    / serves the databases disk \(\/srv\/lance\), bucket \(s3:\/\/[^()]*@bucket\/prefix\), upstream \(https:\/\/lance\.example\.com\/\), other \(lance\.example\.com:443\)$/,
  );
  expect(first).not.toContain("secret");
});

test("the greeting names the pages for people, and directories that did not exist", () => {
  const address = { address: "127.0.0.1", family: "IPv4", port: 2333 };
  const gateway = { address, readOnly: [] } as unknown as Gateway;
  const of = (...args: readonly string[]) =>
    greeting(readServeOptions(sourcesOf(["--root", ".", ...args])), undefined, gateway, {
      links: true,
      created: ["/srv/lnace"],
    });
  expect(of()).toContain(
    "  console   http://127.0.0.1:2333/console/\n  API page  http://127.0.0.1:2333/docs\n",
  );
  expect(of()).toMatch(/\n {2}manual {4}\S+README\.md\n/);
  expect(of()).toContain("  new       /srv/lnace did not exist, and has been created\n");
  expect(of("--no-console", "--no-docs")).not.toMatch(/console|API page/);
  expect(of()).toContain("  agents    http://127.0.0.1:2333/mcp\n");
  expect(of("--no-mcp")).not.toMatch(/agents/);
});
