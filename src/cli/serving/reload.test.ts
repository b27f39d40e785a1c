import assert from "node:assert/strict";
import { join } from "node:path";
import { pino } from "pino";
import { describe, it, onTestFinished, vi } from "vitest";
import { sourcesOf } from "../../../test/support/command-line.ts";
import { temporaryDirectory } from "../../../test/support/directory.ts";
import { inFastTime } from "../../../test/support/fast-time.ts";
import { makeSilentFile } from "../../../test/support/silent-file.ts";
import type { Configuration } from "../../config/configuration.ts";
import { loadConfiguration } from "./load-configuration.ts";
import { type ReloadOptions, startReloads } from "./reload.ts";

const loaded = (...args: readonly string[]) => loadConfiguration(sourcesOf(args), {});

async function start(...args: readonly string[]) {
  return startWith({}, ...args);
}

async function startWith(given: Partial<ReloadOptions>, ...args: readonly string[]) {
  const prepared: Configuration[] = [];
  const events: string[] = [];
  const lines: Record<string, unknown>[] = [];
  const secrets: string[] = [];
  let wanted: readonly string[] = args;
  const reloads = startReloads({
    gateway: {
      async prepare(configuration) {
        prepared.push(configuration);
        return { commit: () => void events.push("commit"), abort: async () => void events.push("abort") };
      },
      refresh: async () => void events.push("refresh"),
    },
    first: await loaded(...args),
    stamp: "",
    load: () => loaded(...wanted),
    secrets,
    environment: {},
    log: pino({ level: "info" }, { write: (line: string) => void lines.push(JSON.parse(line)) }),
    ...given,
  });
  onTestFinished(reloads.close);
  const change = async (...to: readonly string[]) => {
    wanted = to;
    await reloads.reload();
    return lines.at(-1) ?? {};
  };
  return { reloads, change, prepared, events, secrets, lines };
}

describe("startReloads", () => {
  it("applies what can change, warns of the rest, and shows what is in effect", async () => {
    const { reloads, change, events, prepared, lines } = await start("--port", "1");
    const line = await change("--port", "2", "--keep-alive", "1s", "--log-level", "warn");
    assert.deepEqual([line["msg"], line["options"]], ["the configuration has changed", ["log-level"]]);
    assert.deepEqual(
      lines.map(({ option }) => option),
      ["port", "keep-alive", undefined],
    );
    assert.deepEqual([events, prepared[0]?.options.port], [["commit", "refresh"], 1]);
    const { port, "keep-alive": keepAlive, "log-level": level } = reloads.shown.options;
    assert.deepEqual([port?.value, keepAlive?.value, level?.value], [1, "620s", "warn"]);
  });

  it("compares with what is in effect, and not with what was wanted", async () => {
    const { change, events } = await start("--log-level", "warn");
    await change("--log-level", "error");
    assert.equal((await change("--log-level", "error"))["msg"], "the configuration has not changed");
    await change("--log-level", "warn");
    assert.deepEqual(events, ["commit", "refresh", "refresh", "commit", "refresh"]);
  });

  it("does not open the gateway to everyone where other machines reach it", async () => {
    const open = ["--host", "0.0.0.0"];
    const keys = ["--auth", "api-key", "--api-keys-file", "keys.json"];
    const { change, prepared, reloads } = await start(...open, ...keys);
    const line = await change(...open);
    assert.equal(line["msg"], "the configuration stays as it was");
    assert.match(String(line["reason"]), /everyone could do everything/);
    assert.deepEqual([prepared, reloads.shown.options["auth"]?.value], [[], ["api-key"]]);
  });

  it("masks the secrets of a changed configuration in the log from then on", async () => {
    const upstream = ["--uri", "http://up", "--upstream-identity", "service"];
    const { change, secrets } = await start(...upstream, "--upstream-token", "first-token");
    await change(...upstream, "--upstream-token", "second-token");
    assert.ok(secrets.includes("second-token"));
  });

  it("ends in time when a file does not answer, after which everything stays as it was", async () => {
    const { path: folder, remove } = await temporaryDirectory();
    onTestFinished(remove);
    const { change, prepared } = await start("--uri", "http://up");
    for (const option of ["--config", "--upstream-token-file"]) {
      const file = join(folder, option);
      await makeSilentFile(file);
      const line = await inFastTime(() => change("--uri", "http://up", option, file));
      assert.equal(line["msg"], "the configuration stays as it was");
      assert.match(String(line["reason"]), /cannot be read: ETIMEDOUT/);
    }
    assert.deepEqual(prepared, []);
  });

  it("takes a file over only once nobody writes it any more", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    onTestFinished(() => void vi.useRealTimers());
    let stamp = "whole";
    let level = "warn";
    const { prepared } = await startWith(
      { stamp, stampOf: async () => stamp, load: () => loaded("--log-level", level) },
      ...["--log-level", level],
    );
    const look = () => vi.advanceTimersByTimeAsync(1_000);
    // The first part of a file may be a configuration by itself.
    level = "info";
    for (const size of ["0", "1", "2"]) {
      stamp = size;
      await look();
    }
    [stamp, level] = ["3", "error"];
    await look();
    assert.equal(prepared.length, 0);
    await look();
    assert.deepEqual(
      prepared.map(({ options }) => options.logLevel),
      ["error"],
    );
  });

  it("changes nothing any more once it is closed", async () => {
    const { reloads, change, prepared } = await start("--log-level", "warn");
    reloads.close();
    await change("--log-level", "error");
    assert.deepEqual(prepared, []);
  });
});
