import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parse, stringify } from "yaml";
import { pythonInterpreter } from "../../scripts/python-environment.ts";
import { people, personStream } from "../support/arrow.ts";
import { freePort } from "../support/free-port.ts";
import { PROTOCOLS } from "../support/protocols.ts";
import { type GatewayProcess, startGateway } from "./support/gateway.ts";
import { untilListening } from "./support/store-servers.ts";
import { ROOT } from "./support/tools.ts";

/** Starts Envoy with the shipped configuration, on a free port and with the given gateways as its endpoints. */
async function startEnvoy(gateways: readonly GatewayProcess[]) {
  const folder = await mkdtemp(join(tmpdir(), "lance-gateway-envoy-"));
  const port = await freePort();
  const config = parse(readFileSync(join(ROOT, "deploy", "envoy", "envoy.yaml"), "utf8"));
  const { listeners, clusters } = config.static_resources;
  listeners[0].address.socket_address = { address: "127.0.0.1", port_value: port };
  clusters[0].load_assignment.endpoints[0].lb_endpoints = gateways.map(({ address }) => {
    const [host, gatewayPort] = address.split(":");
    return { endpoint: { address: { socket_address: { address: host, port_value: Number(gatewayPort) } } } };
  });
  const file = join(folder, "envoy.yaml");
  await writeFile(file, stringify(config));
  const program = join(pythonInterpreter("deploy"), "..", "envoy");
  const child = spawn(program, ["-c", file, "--log-level", "warn", "--use-dynamic-base-id"], {
    stdio: ["ignore", "ignore", "inherit"],
  });
  const ended = once(child, "exit");
  await untilListening(port, child);
  return {
    port,
    async close() {
      child.kill("SIGTERM");
      await ended;
      await rm(folder, { recursive: true, force: true });
    },
  };
}

test("Envoy passes calls of every protocol to two gateways on a root, and leaves out the one that has ended", async (t) => {
  const first = await startGateway("--names", "unicode");
  t.onTestFinished(() => first.close());
  const second = await startGateway("--root", first.root, "--names", "unicode");
  t.onTestFinished(() => second.close());
  const envoy = await startEnvoy([first, second]);
  t.onTestFinished(() => envoy.close());
  await expect.poll(async () => (await fetch(`http://127.0.0.1:${envoy.port}/readyz`)).status).toBe(200);

  for (const [index, open] of Object.values(PROTOCOLS).entries()) {
    const { client, close } = open(envoy.port);
    // The path has characters that a proxy must leave as they are.
    const id = [`rows & more +${index}`];
    await client.createTable({ id }, personStream(people(3)));
    expect((await client.countTableRows({ id })).count).toBe(3n);
    const { bytes } = await client.queryTable({ id });
    expect(bytes.length).toBeGreaterThan(0);
    close();
  }

  await second.close();
  const list = async () => (await fetch(`http://127.0.0.1:${envoy.port}/v1/namespace/%24/list`)).status;
  await expect
    .poll(async () => new Set(await Promise.all(Array.from({ length: 20 }, list))))
    .toEqual(new Set([200]));
});
