import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pino } from "pino";
import { describe, expect, it, onTestFinished } from "vitest";
import { sourcesOf } from "../../test/support/command-line.ts";
import { temporaryDirectory } from "../../test/support/directory.ts";
import { freePort } from "../../test/support/free-port.ts";
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

it("serves the same at --sql-port, and names that port if it is in use", async () => {
  const { path, remove } = await temporaryDirectory();
  onTestFinished(remove);
  const sqlPort = await freePort();
  const args = ["--port", "0", "--drain-seconds", "0", "--root", path, "--sql-port", String(sqlPort)];
  const options = readServeOptions(sourcesOf(args));
  const log = pino({ level: "silent" });
  const gateway = await startGateway(options, log);
  for (const port of [gateway.address.port, sqlPort]) {
    const { status } = await sendHttp(port, { method: "GET", path: "/healthz" });
    assert.equal(status, 200);
  }
  await assert.rejects(startGateway(options, log), { code: "EADDRINUSE", port: sqlPort });
  await gateway.close("cut off");
  await assert.rejects(sendHttp(sqlPort, { method: "GET", path: "/healthz", agent: false }), {
    code: "ECONNREFUSED",
  });
});

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
    const configurationOf = (
      all: readonly (readonly string[])[],
      ...more: readonly string[]
    ): Configuration => {
      const byName = all.map(([name = "", ...more]) => {
        const own = ["--backend", file, "--backend-option", `name=${name}`, ...more];
        return [name, readServeOptions(sourcesOf([...base, ...own]))] as const;
      });
      const options = readServeOptions(sourcesOf([...base, ...more]));
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
    return { gateway, configurationOf, events, say: word.resolve, list, folder: path };
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

  it("keeps a removed backend open for a call from before several changes", async () => {
    const { gateway, configurationOf, events, say, list, folder } = await start(["a"], ["b"]);
    const file = join(folder, "audit.jsonl");
    const change = async (names: readonly string[], ...flags: readonly string[]) =>
      (
        await gateway.prepare(
          configurationOf(
            names.map((name) => [name]),
            ...flags,
          ),
        )
      ).commit();
    await change(["a", "b"], "--audit-log", file);
    const running = list("b");
    await expect.poll(() => events.at(-1)).toBe("call b");
    await change(["a", "b", "c"], "--audit-log", file);
    await change(["a"]);
    await expect.poll(() => events).toContain("close c");
    assert.ok(!events.includes("close b"));
    say();
    assert.equal(await running, 200);
    await expect.poll(() => events).toContain("close b");
    await expect.poll(async () => (await readFile(file, "utf8")).split("\n").length).toBe(2);
    await gateway.close();
    assert.deepEqual(
      events.filter((each) => each.startsWith("close")),
      ["close c", "close b", "close a"],
    );
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

  it("moves the audit log and the access log to other files without losing or doubling a line", async () => {
    const { gateway, configurationOf, events, say, list, folder } = await start(["a"]);
    const filesOf = (name: string) => ["audit", "access"].map((log) => join(folder, `${log}-${name}.jsonl`));
    const change = async (...names: readonly string[]) => {
      const [auditLog = "", accessLog = ""] = filesOf(names.at(-1) ?? "");
      const flags = names.length === 0 ? [] : ["--audit-log", auditLog, "--access-log", accessLog];
      (await gateway.prepare(configurationOf([["a"]], ...flags))).commit();
    };
    const linesOf = async (file: string) =>
      (await readFile(file, "utf8")).split("\n").flatMap((line) => (line === "" ? [] : [JSON.parse(line)]));
    await change("one");
    const running = Array.from({ length: 5 }, () => list("a"));
    await expect.poll(() => events.filter((each) => each === "call a").length).toBe(5);
    await change("two");
    // The new files get lines while calls of the former configuration run.
    assert.equal(await list("b"), 404);
    say();
    assert.deepEqual(await Promise.all(running), [200, 200, 200, 200, 200]);
    let calls = 0;
    let stop = false;
    const busy = Array.from({ length: 8 }, async () => {
      for (; !stop; calls++) assert.equal(await list("a"), 200);
    });
    const names = ["one", "two", "three", "four", "five"];
    for (const name of names.slice(2)) {
      await change(name);
      const before = calls;
      await expect.poll(() => calls).toBeGreaterThan(before + 20);
    }
    stop = true;
    await Promise.all(busy);
    const linesOfAll = (log: number) =>
      Promise.all(names.map((name) => linesOf(filesOf(name)[log] as string)));
    // A request is noted when its connection is done with it, which may be after its caller has the answer.
    await expect.poll(async () => (await linesOfAll(1)).flat().length).toBe(calls + 6);
    await change();
    assert.equal(await list("a"), 200);
    await gateway.close();
    const [audited, accesses] = [await linesOfAll(0), await linesOfAll(1)];
    assert.equal(audited[0]?.length, 5);
    assert.deepEqual([audited.flat().length, accesses.flat().length], [calls + 6, calls + 6]);
    assert.ok(audited.every(({ length }) => length > 0));
  });

  it("keeps its logs if the file of another one cannot be opened", async () => {
    const { gateway, configurationOf, say, list, folder } = await start(["a"]);
    say();
    const file = join(folder, "audit.jsonl");
    const change = await gateway.prepare(configurationOf([["a"]], "--audit-log", file));
    change.commit();
    const wrong = configurationOf([["a"]], "--audit-log", join(folder, "missing", "audit.jsonl"));
    await assert.rejects(gateway.prepare(wrong), /^Error: --audit-log .* cannot be opened: ENOENT/);
    assert.equal(await list("a"), 200);
    assert.equal((await readFile(file, "utf8")).split("\n").length, 2);
  });
});
