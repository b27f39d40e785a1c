import assert from "node:assert/strict";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { nodeTrials } from "./methods/node-trials.ts";
import { outcomeOf, rowsOf, type Trial } from "./methods/trial.ts";
import { type GatewayProcess, startGateway } from "./support/gateway.ts";
import { installedVersion } from "./support/installed.ts";
import { runPython } from "./support/python.ts";
import { type Recorder, startRecorder } from "./support/recorder.ts";

const RESULTS = join(import.meta.dirname, "lancedb-methods.json");

interface PythonTrials {
  readonly version: string;
  readonly missing: string[];
  readonly trials: Trial[];
}

describe("every public method of LanceDB's remote clients", () => {
  let gateway: GatewayProcess;
  let recorder: Recorder;
  const trials: Trial[] = [];
  let python = "";
  beforeAll(async () => {
    gateway = await startGateway();
    recorder = await startRecorder(gateway.uri);
  });
  afterAll(async () => {
    await recorder.close();
    await gateway.close();
  });

  it("has a call in Python, synchronous and asynchronous", async () => {
    const printed = await runPython("lancedb_methods.py", recorder.uri, gateway.uri);
    const results = JSON.parse(printed) as PythonTrials;
    assert.deepEqual(results.missing, []);
    trials.push(...results.trials);
    python = results.version;
  });

  it("has a call in Node", async () => {
    const results = await nodeTrials(recorder, gateway.uri);
    assert.deepEqual(results.missing, []);
    trials.push(...results.trials);
  });

  it("is served, or refused as the table says", async () => {
    const failed = trials.filter((trial) => outcomeOf(trial) === "fails");
    const told = failed.map(
      ({ client, object, method, remote }) => `${client} ${object}.${method}: ${remote.error}`,
    );
    const methods = new Set(failed.map(({ object, method }) => `${object}.${method}`));
    assert.deepEqual([...methods], [], told.join("\n"));
    const versions = { python, node: installedVersion("@lancedb/lancedb") };
    const results = JSON.stringify({ versions, methods: rowsOf(trials) }, null, 2);
    await expect(`${results}\n`).toMatchFileSnapshot(RESULTS);
  });
});
