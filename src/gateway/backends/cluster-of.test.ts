import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pino } from "pino";
import { expect, test } from "vitest";
import { startRayStandIn } from "../../../test/fixtures/ray/ray-stand-in.ts";
import { people, personStream } from "../../../test/support/arrow.ts";
import { sourcesOf } from "../../../test/support/command-line.ts";
import { temporaryDirectory } from "../../../test/support/directory.ts";
import { freePort } from "../../../test/support/free-port.ts";
import { until } from "../../../test/support/until.ts";
import { readConfiguration } from "../../config/configuration.ts";
import { UsageError } from "../../config/option-spec.ts";
import type { ServeOptions } from "../../config/options/groups.ts";
import { readServeOptions } from "../../config/serve-options.ts";
import { startGateway } from "../start-gateway.ts";
import { clusterOf } from "./cluster-of.ts";

async function addressWith(options: Partial<ServeOptions>): Promise<string | undefined> {
  const ray = { jobEngine: "ray", rayAddresses: ["http://head:8265"] } as const;
  return (await clusterOf({ ...readServeOptions([]), ...ray, ...options }))?.gatewayUrl;
}

test("drivers get an address that the port answers at", async () => {
  assert.equal(await addressWith({ port: 2400 }), "http://127.0.0.1:2400");
  for (const host of ["0.0.0.0", "::", "127.0.0.1"])
    assert.equal(await addressWith({ port: 2400, host }), "http://127.0.0.1:2400", host);
  // Its address is ::1 on some machines.
  assert.equal(await addressWith({ port: 2400, host: "localhost" }), "http://localhost:2400");
  assert.equal(await addressWith({ port: 2400, host: "10.0.0.7" }), "http://10.0.0.7:2400");
  assert.equal(await addressWith({ port: 2400, host: "::1" }), "http://[::1]:2400");
});

test("a port whose address drivers cannot be given is refused without --ray-gateway-url", async () => {
  for (const [options, why] of [
    [{ port: 0 }, /--port 0/],
    [{ socketPath: "/run/gateway.sock" }, /--listen/],
    [{ tlsCert: "cert.pem", tlsKey: "key.pem" }, /--tls-cert/],
  ] as const) {
    await assert.rejects(addressWith(options), (error: Error) => {
      assert.ok(error instanceof UsageError);
      assert.match(error.message, why);
      assert.match(error.message, /--ray-gateway-url/);
      return true;
    });
    const rayGatewayUrl = "https://gateway:2333";
    assert.equal(await addressWith({ ...options, rayGatewayUrl }), rayGatewayUrl);
  }
});

test("drivers of each of several databases reach their own job", async (t) => {
  const directory = await temporaryDirectory();
  t.onTestFinished(directory.remove);
  const key = "a key that the log shows the digest of";
  const digest = createHash("sha256").update(key).digest("hex");
  const head = await startRayStandIn(t, (job) => {
    job.logs = `lance-gateway-driver-key sha256:${digest}\n`;
  });
  const file = join(directory.path, "gateway.yaml");
  const databases = ["sales", "team/events"].map(
    (name, at) => `  ${name}: { root: ${directory.path}/${at} }`,
  );
  const cluster = `job-engine: ray\nray-address: ["${head.url}"]\njob-engine-min-rows: 0`;
  const port = await freePort();
  await writeFile(
    file,
    `port: ${port}\ndrain-seconds: 0\n${cluster}\ndefault-database: sales\ndatabases:\n${databases.join("\n")}\n`,
  );
  const { options, databases: named } = await readConfiguration(sourcesOf(["--config", file]), {});
  const gateway = await startGateway(options, pino({ level: "silent" }), named);
  t.onTestFinished(async () => void (await gateway.close("cut off")));
  const post = async (url: string, body: object | Uint8Array, token?: string) => {
    const isRows = body instanceof Uint8Array;
    const type = isRows ? "application/vnd.apache.arrow.stream" : "application/json";
    const response = await fetch(url, {
      method: "POST",
      headers: { "content-type": type, ...(token !== undefined && { authorization: `Bearer ${token}` }) },
      body: isRows ? new Uint8Array(body) : JSON.stringify(body),
    });
    return { status: response.status, text: await response.text() };
  };
  for (const name of ["sales", "team%2Fevents"]) {
    const base = `http://127.0.0.1:${port}/db/${name}`;
    const known = new Set(head.jobs.keys());
    assert.equal((await post(`${base}/v1/table/t/create`, personStream(people(3)))).status, 200);
    const building = post(`${base}/v1/table/t/create_scalar_index`, { column: "id", index_type: "BTREE" });
    await until(() => head.jobs.size > known.size);
    const job = [...head.jobs.values()].find(({ id }) => !known.has(id));
    const [, url = "", id, run] =
      /--gateway '(\S+)' --job (\S+) --run (\d+)$/.exec(job?.entrypoint ?? "") ?? [];
    assert.equal(url, base);
    const place = { job_id: id, run: Number(run) };
    await expect
      .poll(async () => (await post(`${url}/v1/drivers/describe`, place, key)).status, { timeout: 20_000 })
      .toBe(200);
    const failure = { message: "enough", retryable: false };
    assert.equal((await post(`${url}/v1/drivers/finish`, { ...place, failure }, key)).status, 200);
    assert.match((await building).text, /enough/);
  }
}, 60_000);
