import assert from "node:assert/strict";
import { once } from "node:events";
import { readdir, readFile, readlink, rename, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { changeKeyFile } from "../../src/auth/api-keys/key-file.ts";
import { SECRET, startReceiver } from "../fixtures/events.ts";
import { makeAuthority } from "../support/certificates.ts";
import { temporaryDirectory } from "../support/directory.ts";
import { jsonOf, sendHttp } from "../support/http.ts";
import { type Program, startProgram, startProgramIn } from "../support/program.ts";
import { makeSilentFile } from "../support/silent-file.ts";

/** Variables that Kubernetes makes for a Service with the name of the gateway. */
const SERVICE = { LANCE_GATEWAY_PORT: "tcp://10.0.0.1:80", LANCE_GATEWAY_SERVICE_HOST: "10.0.0.1" };

/** A program that serves by a configuration file, and its lines of the log. */
class Served {
  readonly program: Program;
  readonly file: string;
  port = 0;
  admin = 0;
  #stderr = "";
  #stdout = "";

  constructor(file: string, ...args: readonly string[]) {
    this.file = file;
    this.program = startProgramIn(SERVICE, "serve", "--config", file, ...args);
    this.program.child.stderr?.on("data", (piece) => {
      this.#stderr += piece;
    });
    this.program.child.stdout?.on("data", (piece) => {
      this.#stdout += piece;
    });
  }

  async listening(): Promise<void> {
    this.port = await this.program.listening();
    this.admin = Number(/admin +http:\/\/127\.0\.0\.1:(\d+)/.exec(this.#stdout)?.[1]);
  }

  lines(message: string): Record<string, unknown>[] {
    const whole = this.#stderr.slice(0, this.#stderr.lastIndexOf("\n") + 1);
    const lines = whole.split("\n").filter((line) => line.startsWith("{"));
    return lines.map((line) => JSON.parse(line)).filter(({ msg }) => msg === message);
  }

  /** Replaces the file as editors do, and waits until a line of the log has come. */
  async change(text: string, message: string, hurry = true): Promise<Record<string, unknown>> {
    const before = this.lines(message).length;
    await writeFile(`${this.file}.new`, text);
    await rename(`${this.file}.new`, this.file);
    if (hurry) this.program.child.kill("SIGHUP");
    await expect.poll(() => this.lines(message).length).toBeGreaterThan(before);
    return this.lines(message)[before] as Record<string, unknown>;
  }

  async operator(method: string, path: string) {
    const answer = await sendHttp(this.admin, { method, path });
    return { status: answer.status, text: answer.bytes.toString() };
  }
}

const CHANGED = "the configuration has changed";
const OF_A_SERVICE = "a variable of an option has the address of a Kubernetes Service, and no effect";
const UNCHANGED = "the configuration stays as it was";
const NEEDS_RESTART = "an option has changed that cannot change while the gateway runs";

describe("a gateway whose configuration changes", () => {
  let folder: string;
  let remove: () => Promise<void>;
  const started: Served[] = [];
  beforeAll(async () => {
    ({ path: folder, remove } = await temporaryDirectory());
  });
  afterAll(async () => {
    for (const { program } of started) program.child.kill("SIGKILL");
    await remove();
  });

  async function serve(name: string, text: string, ...args: readonly string[]): Promise<Served> {
    const file = join(folder, name);
    await writeFile(file, text);
    const served = new Served(file, "--port", "0", "--admin-port", "0", ...args);
    started.push(served);
    await served.listening();
    return served;
  }

  it("adds and removes databases in all workers, and keeps the old configuration when the new one is wrong", async () => {
    const database = (name: string) => `  ${name}: { root: "${join(folder, name)}" }\n`;
    const head = "metrics-on: admin\nlog-level: info\ndatabases:\n";
    const served = await serve("workers.yaml", `${head}${database("one")}`, "--workers", "2");
    const { port } = served;
    const create = (name: string) =>
      sendHttp(port, { path: `/db/${name}/v1/namespace/n/create`, headers: JSON_TYPE, body: "{}" });
    const list = (name: string) =>
      sendHttp(port, { method: "GET", path: `/db/${name}/v1/namespace/%24/list` });
    assert.equal((await create("one")).status, 200);
    assert.equal((await create("two")).status, 404);
    assert.deepEqual(
      served.lines(OF_A_SERVICE).map(({ variable, level }) => [variable, level]),
      [["LANCE_GATEWAY_PORT", 40]],
    );

    const receiver = await startReceiver({ onTestFinished });
    const secret = join(folder, "webhook-secret");
    await writeFile(secret, SECRET);
    const webhook = `webhook-url: ${receiver.url}\nwebhook-secret-file: ${secret}\nwebhook-dir: ${folder}/events\n`;
    const audit = join(folder, "audit.jsonl");
    const line = await served.change(
      `workers: 7\nmax-calls-per-principal: 90\naudit-log: ${audit}\n${webhook}${head}${database("one")}${database("two")}`,
      CHANGED,
    );
    const changed = [
      "audit-log",
      "max-calls-per-principal",
      "webhook-url",
      "webhook-secret-file",
      "webhook-dir",
    ];
    assert.deepEqual(new Set([line["options"]].flat()), new Set([...changed, "databases.two (added)"]));
    assert.deepEqual(served.lines(NEEDS_RESTART), []);
    assert.equal((await create("two")).status, 200);
    assert.equal(JSON.parse(await readFile(audit, "utf8")).database, "two");
    await expect.poll(() => receiver.received.map(({ event }) => event.subject)).toEqual(["n"]);
    // Connections go to either worker.
    const seen = await Promise.all(Array.from({ length: 8 }, () => list("two")));
    for (const answer of seen) assert.deepEqual(jsonOf(answer)["namespaces"], ["n"]);

    const wrong = await served.change(`${head}${database("one")}prot: 1\n`, UNCHANGED);
    assert.match(String(wrong["reason"]), /prot is unknown; did you mean port\?$/);
    assert.equal((await list("two")).status, 200);

    const restart = await served.change(`keep-alive: 1s\n${head}${database("two")}`, CHANGED);
    assert.ok([restart["options"]].flat().includes("databases.one (removed)"));
    assert.deepEqual(
      served.lines(NEEDS_RESTART).map(({ option, level }) => [option, level]),
      [["keep-alive", 40]],
    );
    const gone = await Promise.all(Array.from({ length: 8 }, () => list("one")));
    assert.deepEqual(new Set(gone.map(({ status }) => status)), new Set([404]));
    assert.equal((await list("two")).status, 200);
  });

  it("serves on by an earlier change in all workers when the first of them cannot open a later one", async () => {
    const [one, two] = ["kept", "later"].map((name) => join(folder, name));
    const text = `databases:\n  one: { root: "${one}" }\n`;
    const served = await serve("kept.yaml", text, "--workers", "2");
    await served.change(`${text}  two: { root: "${two}" }\n`, CHANGED);
    await served.change(`auth: oidc\n${text}  two: { root: "${two}" }\n`, UNCHANGED);
    const path = "/db/two/v1/namespace/%24/list";
    // Connections go to either worker.
    const seen = Array.from({ length: 16 }, () => sendHttp(served.port, { method: "GET", path }));
    assert.deepEqual(new Set((await Promise.all(seen)).map(({ status }) => status)), new Set([200]));
    served.program.child.kill("SIGTERM");
    assert.equal((await served.program.ended).code, 0);
  });

  it("has metrics, the level of the log and profiles of workers on the admin port alone", async () => {
    const served = started[0] as Served;
    assert.equal((await sendHttp(served.port, { method: "GET", path: "/metrics" })).status, 404);
    assert.match((await served.operator("GET", "/metrics")).text, /^lance_gateway_workers 2$/m);
    assert.equal((await served.operator("GET", "/readyz")).status, 200);
    const profile = await served.operator("GET", "/cpu-profile?seconds=1&worker=2");
    assert.ok(JSON.parse(profile.text).nodes.length > 0);
    const heap = await served.operator("POST", "/heap-snapshot?worker=1");
    assert.ok(JSON.parse(heap.text).nodes.length > 0);
    assert.equal((await served.operator("GET", "/cpu-profile?worker=3")).status, 400);
    assert.equal((await served.operator("PUT", "/log-level?level=debug")).status, 200);
    await sendHttp(served.port, { method: "GET", path: "/db/two/v1/namespace/%24/list" });
    await expect.poll(() => served.lines("call").length).toBeGreaterThan(0);
    const { options, databases } = JSON.parse((await served.operator("GET", "/config")).text);
    assert.deepEqual([options["keep-alive"].value, Object.keys(databases)], ["620s", ["two"]]);
  });

  it("reads secrets again when their files change, and shows none of them", async () => {
    const seen: (string | undefined)[] = [];
    const upstream = createServer((request, response) => {
      seen.push(request.headers.authorization);
      response.setHeader("content-type", "application/json").end('{"namespaces":[]}');
    }).listen(0, "127.0.0.1");
    await once(upstream, "listening");
    const token = join(folder, "token");
    await writeFile(token, "marked-first\n");
    const uri = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`;
    const text = `uri: ${uri}\nupstream-identity: service\nupstream-token-file: ${token}\n`;
    const served = await serve("secret.yaml", text);
    const list = () => sendHttp(served.port, { method: "GET", path: "/v1/namespace/%24/list" });
    await list();
    assert.ok(seen.includes("Bearer marked-first"));
    await writeFile(token, "marked-second\n");
    await expect.poll(() => served.lines(CHANGED).length).toBe(1);
    assert.deepEqual(served.lines(CHANGED)[0]?.["options"], ["upstream-token"]);
    await list();
    assert.ok(seen.includes("Bearer marked-second"));
    const { text: shown } = await served.operator("GET", "/config");
    assert.match(shown, /upstream-token-file/);
    assert.doesNotMatch(shown, /marked/);
    upstream.close();
    upstream.closeAllConnections();
    await expect.poll(async () => (await served.operator("GET", "/readyz")).status).toBe(503);
    served.program.child.kill("SIGTERM");
    const { code, stderr } = await served.program.ended;
    assert.equal(code, 0);
    assert.doesNotMatch(stderr, /marked/);
  });

  it("opens an upstream again in all workers when the file of its authorities changes", async () => {
    const [former, renewed] = await Promise.all([makeAuthority(), makeAuthority()]);
    const upstream = createTlsServer(await renewed.sign(), (_request, response) => {
      response.setHeader("content-type", "application/json").end('{"namespaces":[]}');
    }).listen(0, "127.0.0.1");
    await once(upstream, "listening");
    const ca = join(folder, "authorities.pem");
    await writeFile(ca, former.ca);
    const uri = `https://127.0.0.1:${(upstream.address() as AddressInfo).port}`;
    const served = await serve("authorities.yaml", `uri: ${uri}\nupstream-ca: "${ca}"\nworkers: 2\n`);
    const statuses = async () => {
      const path = "/v1/namespace/%24/list";
      const calls = Array.from({ length: 8 }, () => sendHttp(served.port, { method: "GET", path }));
      return new Set((await Promise.all(calls)).map(({ status }) => status));
    };
    assert.deepEqual(await statuses(), new Set([503]));
    await writeFile(ca, renewed.ca);
    await expect.poll(() => served.lines(CHANGED).length).toBe(1);
    assert.deepEqual(served.lines(CHANGED)[0]?.["options"], ["upstream-ca"]);
    assert.deepEqual(await statuses(), new Set([200]));
    upstream.close();
    upstream.closeAllConnections();
  });

  it("counts a changed file of keys in all workers once it has reported a reload", async () => {
    const keys = join(folder, "revoked.json");
    const created = startProgram(...["keys", "create", "--file", keys, "--name", "ann", "--role", "reader"]);
    const key = /lgw_\S+/.exec((await created.ended).stdout)?.[0] ?? "";
    const root = `root: "${join(folder, "revoked")}"\n`;
    const served = await serve("keys.yaml", `${root}workers: 2\nauth: api-key\napi-keys-file: "${keys}"\n`);
    const path = "/v1/namespace/%24/list";
    const headers = { "x-api-key": key };
    const statuses = () =>
      Promise.all(
        Array.from(
          { length: 8 },
          async () => (await sendHttp(served.port, { method: "GET", path, headers })).status,
        ),
      );
    assert.deepEqual(new Set(await statuses()), new Set([200]));
    await changeKeyFile(keys, () => []);
    served.program.child.kill("SIGHUP");
    await expect
      .poll(() => served.lines("the configuration has not changed").length, { interval: 1 })
      .toBe(1);
    assert.deepEqual(new Set(await statuses()), new Set([401]));
    served.program.child.kill("SIGTERM");
    await served.program.ended;
  });

  it("ends by a signal although a file of keys does not answer, with and without workers", async () => {
    async function endOf(workers: number) {
      const own = (name: string) => join(folder, `${workers}-${name}`);
      const [keys, silent] = [own("hung.json"), own("silent.json")];
      await startProgram(...["keys", "create", "--file", keys, "--name", "ann", "--role", "reader"]).ended;
      const root = `root: "${own("hung")}"\nworkers: ${workers}\n`;
      const served = await serve(`${workers}-hung.yaml`, `${root}auth: api-key\napi-keys-file: "${keys}"\n`);
      await makeSilentFile(silent);
      await rename(silent, keys);
      const opened = async () => {
        const folder = `/proc/${served.program.child.pid}/fd`;
        const links = (await readdir(folder)).map((name) => readlink(join(folder, name)).catch(() => ""));
        return (await Promise.all(links)).includes(keys);
      };
      await expect.poll(opened).toBe(true);
      served.program.child.kill("SIGTERM");
      return (await served.program.ended).signal;
    }
    assert.deepEqual(await Promise.all([endOf(1), endOf(2)]), ["SIGKILL", "SIGKILL"]);
  });

  it("changes limits and the level of the log, and authenticates from then on", async () => {
    const root = `root: "${join(folder, "limits")}"\n`;
    const served = await serve("limits.yaml", root);
    const list = () => sendHttp(served.port, { method: "GET", path: "/v1/namespace/%24/list" });
    assert.equal((await list()).status, 200);
    await served.change(`${root}rate-limit: total=1:1\nlog-level: debug\n`, CHANGED, false);
    assert.deepEqual([(await list()).status, (await list()).status], [200, 429]);
    assert.equal((await served.operator("GET", "/log-level")).text, '{"level":"debug"}');
    const keys = join(folder, "keys.json");
    await startProgram(...["keys", "create", "--file", keys, "--name", "ann", "--role", "reader"]).ended;
    await served.change(`${root}auth: api-key\napi-keys-file: "${keys}"\n`, CHANGED);
    assert.equal((await list()).status, 401);
    await served.change(`${root}auth: oidc\n`, UNCHANGED);
    assert.equal((await list()).status, 401);
    // The signal of a caller that has gone.
    served.program.child.kill("SIGUSR2");
    assert.equal((await served.program.ended).code, 0);
  });
});

const JSON_TYPE = { "content-type": "application/json" };
