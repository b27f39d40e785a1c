import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { statSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { connect } from "node:net";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import type { InjectOptions } from "fastify";
import { pino } from "pino";
import { describe, it, onTestFinished } from "vitest";
import { temporaryDirectory } from "../../../test/support/directory.ts";
import { createAdminServer, ownProfiles, type Profiles } from "./admin-server.ts";

const LOCAL = "127.0.0.1";

function serve(profiles: Profiles = ownProfiles) {
  let level = "info";
  const readiness = { ready: true };
  const server = createAdminServer({
    readiness,
    metrics: { read: async () => ({ contentType: "text/plain", content: Buffer.from("figures") }) },
    control: {
      configuration: () => ({ options: { port: { value: 1, from: "default" } } }),
      logLevels: ["info", "debug"],
      logLevel: () => level,
      setLogLevel(to) {
        level = to;
      },
      profiles,
    },
    log: pino({ level: "silent" }),
  });
  onTestFinished(server.close);
  const ask = (method: "GET" | "POST" | "PUT", url: string, more: InjectOptions = {}) =>
    server.fastify.inject({ method, url, remoteAddress: LOCAL, headers: { host: "localhost" }, ...more });
  return { server, ask, readiness };
}

/** Returns what a process of its own writes that has `ownProfiles`. */
function elsewhere(code: string): Readable {
  const script = `
    import { ownProfiles } from ${JSON.stringify(import.meta.resolve("./admin-server.ts"))};
    ${code}
  `;
  const args = ["--input-type=module", "-e", script];
  return spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] }).stdout;
}

/** Everything that reveals the state of the process or changes it. */
const CONTROLS = [
  ["GET", "/config"],
  ["GET", "/log-level"],
  ["PUT", "/log-level?level=debug"],
  ["POST", "/heap-snapshot"],
  ["GET", "/cpu-profile?seconds=1"],
] as const;

describe("the server for operators", () => {
  it("has the probes of the data port, and the metrics", async () => {
    const { ask, readiness } = serve();
    const codes = async () =>
      Promise.all(["/healthz", "/livez", "/readyz"].map(async (path) => (await ask("GET", path)).statusCode));
    assert.deepEqual(await codes(), [200, 200, 200]);
    readiness.ready = false;
    assert.deepEqual(await codes(), [200, 200, 503]);
    assert.equal((await ask("GET", "/metrics")).body, "figures");
    assert.equal((await ask("POST", "/metrics")).statusCode, 405);
  });

  it("shows the configuration, and changes the level of the log", async () => {
    const { ask } = serve();
    assert.equal((await ask("GET", "/config")).json().options.port.value, 1);
    assert.deepEqual((await ask("PUT", "/log-level?level=debug")).json(), { level: "debug" });
    assert.deepEqual((await ask("GET", "/log-level")).json(), { level: "debug" });
    for (const wrong of ["?level=loud", "", "?level=info&x=1"]) {
      const { statusCode, body } = await ask("PUT", `/log-level${wrong}`);
      assert.equal(statusCode, 400, body);
    }
    assert.deepEqual((await ask("GET", "/log-level")).json(), { level: "debug" });
  });

  it("makes snapshots of the heap that Chromium's tools read", async () => {
    // Not in this process: its heap is that of many tests.
    const heapSnapshot = async () => elsewhere("(await ownProfiles.heapSnapshot()).pipe(process.stdout);");
    const { ask } = serve({ ...ownProfiles, heapSnapshot });
    const heap = await ask("POST", "/heap-snapshot");
    assert.ok(heap.json().snapshot.meta.node_fields.includes("self_size"));
    assert.match(String(heap.headers["content-disposition"]), /main\.heapsnapshot/);
  });

  it("makes CPU profiles that Chromium's tools read", async () => {
    // Not in this process: the runner of the tests once got SIGSEGV in this file, most likely in V8's profiler.
    const cpuProfile = (milliseconds: number) =>
      text(elsewhere(`process.stdout.write(await ownProfiles.cpuProfile(${milliseconds}));`));
    const { ask } = serve({ ...ownProfiles, cpuProfile });
    const cpu = (await ask("GET", "/cpu-profile?seconds=1")).json();
    assert.ok(cpu.nodes.length > 0 && cpu.endTime - cpu.startTime > 500_000);
  });

  it("bounds profiles in time and number, and names workers that do not exist", async () => {
    const begun = Promise.withResolvers<void>();
    const made = Promise.withResolvers<string>();
    const { ask } = serve({
      ...ownProfiles,
      cpuProfile() {
        begun.resolve();
        return made.promise;
      },
    });
    for (const path of ["/cpu-profile?seconds=61", "/cpu-profile?seconds=0", "/cpu-profile?worker=0"]) {
      assert.equal((await ask("GET", path)).statusCode, 400, path);
    }
    const running = ask("GET", "/cpu-profile?seconds=60");
    await begun.promise;
    assert.equal((await ask("GET", "/cpu-profile")).statusCode, 429);
    assert.equal((await ask("POST", "/heap-snapshot")).statusCode, 429);
    made.resolve("{}");
    assert.equal((await running).statusCode, 200);
    const absent = await ask("POST", "/heap-snapshot?worker=1");
    assert.deepEqual(
      [absent.statusCode, absent.json()],
      [400, { error: "the gateway runs without workers" }],
    );
  });

  it("gives callers from other machines metrics and probes alone", async () => {
    const { ask } = serve();
    const remote = { remoteAddress: "192.0.2.1" };
    for (const path of ["/metrics", "/readyz", "/livez"])
      assert.equal((await ask("GET", path, remote)).statusCode, 200, path);
    for (const [method, path] of CONTROLS) {
      assert.equal((await ask(method, path, remote)).statusCode, 403, path);
      const forwarded = { ...remote, headers: { host: "localhost", "x-forwarded-for": LOCAL } };
      assert.equal((await ask(method, path, forwarded)).statusCode, 403, path);
    }
    assert.deepEqual((await ask("GET", "/log-level")).json(), { level: "info" });
  });

  it("refuses callers without an address, who have reset their connections behind their requests", async () => {
    const { server, ask } = serve();
    const { port } = await server.listen({ host: LOCAL, port: 0 });
    const asked = once(server.fastify.server, "request");
    // The server accepts the connection once this turn is over.
    const socket = connect(port, LOCAL, () => {
      socket.write("PUT /log-level?level=debug HTTP/1.1\r\nhost: localhost\r\n\r\n");
      socket.resetAndDestroy();
    });
    const [request, response] = (await asked) as [IncomingMessage, ServerResponse];
    assert.equal(request.socket.remoteAddress, undefined);
    if (!response.closed) await once(response, "close");
    assert.deepEqual((await ask("GET", "/log-level")).json(), { level: "info" });
  });

  it("refuses pages of other sites and rebound hosts", async () => {
    const { ask } = serve();
    for (const headers of [
      { host: "evil.example" },
      { host: "localhost", "sec-fetch-site": "cross-site" },
      { host: "localhost", "sec-fetch-site": "same-site" },
      { host: "localhost", origin: "https://evil.example" },
    ]) {
      for (const [method, path] of CONTROLS)
        assert.equal(
          (await ask(method, path, { headers })).statusCode,
          403,
          `${path} ${JSON.stringify(headers)}`,
        );
    }
    const metrics = await ask("GET", "/metrics", { headers: { host: "evil.example" } });
    assert.equal(metrics.statusCode, 403);
  });

  it("refuses rebound hosts also where it listens on an address that other machines reach", async () => {
    const { server, ask } = serve();
    await server.listen({ host: "0.0.0.0", port: 0 });
    for (const [method, path] of CONTROLS)
      assert.equal((await ask(method, path, { headers: { host: "evil.example" } })).statusCode, 403, path);
    assert.equal((await ask("GET", "/config", { headers: { host: "127.0.0.1" } })).statusCode, 200);
    assert.equal((await ask("GET", "/metrics", { headers: { host: "gateway.internal" } })).statusCode, 200);
  });

  it("does nothing on GET that a link or an image could start", async () => {
    const { ask } = serve();
    assert.equal((await ask("GET", "/heap-snapshot")).statusCode, 404);
    assert.equal((await ask("POST", "/log-level?level=debug")).statusCode, 404);
  });

  it("listens on a Unix socket of its own user", async () => {
    const { path, remove } = await temporaryDirectory();
    onTestFinished(remove);
    const { server } = serve();
    const socketPath = join(path, "admin.sock");
    await server.listen({ path: socketPath, mode: 0o600 });
    assert.equal(statSync(socketPath).mode & 0o777, 0o600);
    const { get } = await import("node:http");
    const response = await new Promise<NodeJS.ReadableStream>((resolve, reject) => {
      get({ socketPath, path: "/config" }, resolve).on("error", reject);
    });
    assert.match(await text(response), /"port"/);
  });
});
