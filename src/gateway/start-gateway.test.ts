import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pino } from "pino";
import { describe, expect, it, onTestFinished } from "vitest";
import { sourcesOf } from "../../test/support/command-line.ts";
import { temporaryDirectory } from "../../test/support/directory.ts";
import { sendHttp } from "../../test/support/http.ts";
import type { Configuration } from "../config/configuration.ts";
import { readServeOptions } from "../config/serve-options.ts";
import { startGateway } from "./start-gateway.ts";

/** A backend that notes what becomes of it, and whose calls wait for a word. */
const BACKEND = `
  export default ({ options: { name, fails } }) => {
    if (fails) throw new Error("it cannot be opened");
    const events = globalThis.reloadEvents;
    events.push("open " + name);
    return {
      name,
      operations: {
        async listNamespaces() {
          events.push("call " + name);
          await globalThis.reloadWord;
          return { $typeName: "lance.namespace.v1.ListNamespacesResponse", namespaces: [name], context: {} };
        },
      },
      ready: async () => true,
      close: async () => { events.push("close " + name); },
    };
  };
`;

describe("a changed configuration", () => {
  async function start(...databases: readonly (readonly string[])[]) {
    const { path, remove } = await temporaryDirectory();
    onTestFinished(remove);
    const file = join(path, "backend.mjs");
    await writeFile(file, BACKEND);
    const events: string[] = [];
    const word = Promise.withResolvers<void>();
    Object.assign(globalThis, { reloadEvents: events, reloadWord: word.promise });
    const base = ["--port", "0", "--drain-seconds", "0"];
    const configurationOf = (all: readonly (readonly string[])[]): Configuration => {
      const byName = all.map(([name = "", ...more]) => {
        const own = ["--backend", file, "--backend-option", `name=${name}`, ...more];
        return [name, readServeOptions(sourcesOf([...base, ...own]))] as const;
      });
      const options = readServeOptions(sourcesOf(base));
      return {
        options,
        databases: {
          byName: new Map(byName),
          routes: [{ by: "path" }],
          pathPrefix: "/db",
          fallback: undefined,
        },
      };
    };
    const first = configurationOf(databases);
    const gateway = await startGateway(first.options, pino({ level: "silent" }), first.databases);
    onTestFinished(async () => void (await gateway.close()));
    const list = async (name: string) => {
      const path = `/db/${name}/v1/namespace/%24/list`;
      return (await sendHttp(gateway.address.port, { method: "GET", path })).status;
    };
    return { gateway, configurationOf, events, say: word.resolve, list };
  }

  it("keeps backends that stay the same, and closes others when their calls have ended", async () => {
    const { gateway, configurationOf, events, say, list } = await start(["a"], ["b"]);
    const running = list("b");
    await expect.poll(() => events.at(-1)).toBe("call b");
    const change = await gateway.prepare(configurationOf([["a", "--max-concurrent-calls", "9"], ["c"]]));
    assert.equal(events.at(-1), "open c");
    change.commit();
    assert.equal(await list("b"), 404);
    const later = list("c");
    await expect.poll(() => events.at(-1)).toBe("call c");
    say();
    assert.deepEqual(await Promise.all([running, later, list("a")]), [200, 200, 200]);
    await expect.poll(() => events).toContain("close b");
    assert.deepEqual(
      events.filter((each) => each.startsWith("open")),
      ["open a", "open b", "open c"],
    );
    assert.ok(!events.includes("close a"));
  });

  it("closes what it has opened if a part cannot be opened, and serves on", async () => {
    const { gateway, configurationOf, events, say, list } = await start(["a"]);
    say();
    const wrong = configurationOf([["a"], ["b"], ["c", "--backend-option", "fails=1"]]);
    await assert.rejects(gateway.prepare(wrong), /database c: .*cannot be opened/);
    assert.deepEqual(events, ["open a", "open b", "close b"]);
    assert.equal(await list("a"), 200);
    const change = await gateway.prepare(configurationOf([["a"], ["d"]]));
    await change.abort();
    assert.deepEqual([events.at(-1), await list("d"), await list("a")], ["close d", 404, 200]);
  });
});
