import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { test } from "vitest";
import { allocatorVariables } from "../../bin/allocator.js";

const HAS_LIBRARY = existsSync("/usr/lib/x86_64-linux-gnu/libjemalloc.so.2");

test("a gateway gets the better allocator where the system has it, and its operator's options", () => {
  const { LD_PRELOAD, MALLOC_CONF }: { LD_PRELOAD?: string; MALLOC_CONF?: string } = allocatorVariables(
    ["serve", "--port", "0"],
    {},
  );
  assert.equal(LD_PRELOAD?.endsWith("/libjemalloc.so.2") ?? false, HAS_LIBRARY);
  assert.equal(MALLOC_CONF !== undefined, HAS_LIBRARY);
  const own = allocatorVariables(["serve"], { MALLOC_CONF: "narenas:1" });
  assert.equal(own["MALLOC_CONF"], HAS_LIBRARY ? "narenas:1" : undefined);
});

test("other commands, and a gateway whose operator has chosen, keep their allocator", () => {
  assert.deepEqual(allocatorVariables(["ready"], {}), {});
  for (const LD_PRELOAD of ["", "libother.so"])
    assert.deepEqual(allocatorVariables(["serve"], { LD_PRELOAD }), {});
});

test("a gateway in front of another catalog keeps its allocator, unless it may work on rows", () => {
  const proxies = [["--backend", "rest"], ["--backend=grpc"], ["--uri", "http://a"], ["--address=a:1"]];
  for (const args of proxies) {
    assert.deepEqual(allocatorVariables(["serve", ...args], {}), {});
    const withRows = [
      ["--rows", "here"],
      ["--config", "gateway.yaml"],
    ];
    for (const own of withRows)
      assert.equal("LD_PRELOAD" in allocatorVariables(["serve", ...args, ...own], {}), HAS_LIBRARY);
  }
  assert.deepEqual(allocatorVariables(["serve"], { LANCE_GATEWAY_URI: "http://a" }), {});
  const onRows = allocatorVariables(["serve"], { LANCE_GATEWAY_URI: "http://a", LANCE_GATEWAY_ROWS: "here" });
  assert.equal("LD_PRELOAD" in onRows, HAS_LIBRARY);
  const directory = allocatorVariables(["serve", "--backend", "dir"], { LANCE_GATEWAY_URI: "http://a" });
  assert.equal("LD_PRELOAD" in directory, HAS_LIBRARY);
});
