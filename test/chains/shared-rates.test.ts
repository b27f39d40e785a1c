import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createClient } from "@redis/client";
import { describe, it, type TestContext, vi } from "vitest";
import { startRedis } from "../clients/support/redis.ts";
import { makeAuthority } from "../support/certificates.ts";
import { temporaryDirectory } from "../support/directory.ts";
import { type Program, startProgram } from "../support/program.ts";

/** Longest wait for a state that follows, in milliseconds. */
const PATIENCE = { timeout: 60_000 };

async function folderOf({ onTestFinished }: TestContext): Promise<string> {
  const { path, remove } = await temporaryDirectory();
  onTestFinished(remove);
  return path;
}

async function serve(context: TestContext, ...args: readonly string[]) {
  const root = await folderOf(context);
  const program = startProgram("serve", "--port=0", `--root=${root}`, ...args);
  context.onTestFinished(() => end(program));
  return { program, address: `http://127.0.0.1:${await program.listening()}` };
}

async function end({ child, ended }: Program): Promise<void> {
  child.kill("SIGTERM");
  await ended;
}

/** A user with the rights that a gateway needs. */
const GATEWAY_USER = [
  ...["--user", "gateway", "on", ">open-sesame", "~lance-gateway:*"],
  ...["+eval", "+evalsha", "+time", "+get", "+set", "+del"],
];

/** Calls gateways in turn, all at once, and returns how many calls were let through. */
async function passed(addresses: readonly string[], calls: number): Promise<number> {
  const statuses = await Promise.all(
    Array.from({ length: calls }, async (_, index) => {
      const { status } = await fetch(`${addresses[index % addresses.length]}/v1/namespace/$/table/list`);
      return status;
    }),
  );
  assert.deepEqual(new Set(statuses).difference(new Set([200, 429])), new Set());
  return statuses.filter((status) => status === 200).length;
}

/** Number of times that gateways may start before a server answers all of them in time. */
const STARTS = 10;

/**
 * Starts gateways until they make calls without a late answer of the server, after which each would limit by itself,
 * and asserts that the calls had a single bucket.
 */
async function assertSharedBucket(
  calls: number,
  start: (attempt: number) => Promise<string[]>,
): Promise<void> {
  for (let attempt = 1; attempt <= STARTS; attempt++) {
    const addresses = await start(attempt);
    const answer = await countPassed(addresses, calls);
    const failures = await Promise.all(addresses.map(failuresOf));
    if (failures.every((count) => count === 0)) return assertBurst(20, answer);
  }
  assert.fail(`the server answered too late in each of ${STARTS} attempts`);
}

/** Asserts that calls had a single bucket of a size. */
async function assertOneBucket(burst: number, addresses: readonly string[], calls: number): Promise<void> {
  assertBurst(burst, await countPassed(addresses, calls));
}

interface Passed {
  readonly count: number;
  /** Tokens that came back meanwhile, a single one a second. */
  readonly filled: number;
}

async function countPassed(addresses: readonly string[], calls: number): Promise<Passed> {
  const started = performance.now();
  const count = await passed(addresses, calls);
  const filled = Math.ceil((performance.now() - started) / 1_000);
  return { count, filled };
}

function assertBurst(burst: number, { count, filled }: Passed): void {
  assert.ok(count >= burst && count <= burst + filled, `${count} calls passed`);
}

async function failuresOf(address: string): Promise<number> {
  const page = await (await fetch(`${address}/metrics`)).text();
  return Number(/^lance_gateway_shared_rate_failures_total (\d+)$/m.exec(page)?.[1]);
}

describe("the workers of a gateway", () => {
  it("share its limits without a server", async (context) => {
    const { address } = await serve(context, "--rate-limit=address=1:20", "--workers=2");
    await assertOneBucket(20, [address], 80);
  });
});

describe("gateways with the same server of rates", () => {
  it("share a limit, and store nothing about callers but a hash and a time", async (context) => {
    const redis = await startRedis();
    context.onTestFinished(redis.stop);
    const args = ["--rate-limit=address=1:20", `--rate-limit-redis=redis://127.0.0.1:${redis.port}`];
    const start = (gateways: number, prefix: string) => async (attempt: number) => {
      const own = [...args, `--rate-limit-redis-prefix=${prefix}:${attempt}`];
      const started = await Promise.all(Array.from({ length: gateways }, () => serve(context, ...own)));
      return started.map(({ address }) => address);
    };
    const client = createClient({ url: `redis://127.0.0.1:${redis.port}` });
    await client.connect();
    context.onTestFinished(() => client.destroy());
    for (const [prefix, gateways, calls] of [["one", 2, 60] as const, ["other", 1, 30] as const]) {
      await assertSharedBucket(calls, start(gateways, prefix));
      const keys = await client.keys(`${prefix}:*`);
      assert.notEqual(keys.length, 0);
      for (const key of keys) {
        assert.match((await client.get(key)) ?? "", /^\d{16}$/);
        const ttl = await client.pTTL(key);
        assert.ok(ttl > 0 && ttl <= 20_000, String(ttl));
      }
    }
    for (const key of await client.keys("*")) assert.match(key, /^(one|other):\d+:address:1:20:[\w-]{43}$/);
  });

  it("share it among their workers, too", async (context) => {
    await assertSharedBucket(60, async () => {
      const redis = await startRedis();
      context.onTestFinished(redis.stop);
      const args = ["--rate-limit=total=1:20", `--rate-limit-redis=redis://127.0.0.1:${redis.port}`];
      const started = [await serve(context, ...args, "--workers=2"), await serve(context, ...args)];
      return started.map(({ address }) => address);
    });
  });

  it("limit on their own while it is gone, say so once, and share again when it is back", async (context) => {
    const redis = await startRedis();
    const args = ["--rate-limit=address=1:20", `--rate-limit-redis=redis://127.0.0.1:${redis.port}`];
    const { program, address } = await serve(context, ...args);
    assert.equal(await failuresOf(address), 0);
    await redis.stop();
    await vi.waitFor(async () => {
      await passed([address], 1);
      assert.ok((await failuresOf(address)) >= 2);
    }, PATIENCE);
    assert.ok((await passed([address], 60)) < 30);

    const again = await startRedis({ port: redis.port });
    context.onTestFinished(again.stop);
    const client = createClient({ url: `redis://127.0.0.1:${redis.port}` });
    await client.connect();
    await vi.waitFor(async () => {
      await passed([address], 1);
      assert.equal((await client.keys("lance-gateway:address:*")).length, 1);
    }, PATIENCE);
    await client.close();
    program.child.kill("SIGTERM");
    const { stdout, stderr } = await program.ended;
    const lines = `${stdout}${stderr}`
      .split("\n")
      .filter((line) => /server of shared rate limits/.test(line));
    assert.deepEqual(
      lines.map((line) => (JSON.parse(line) as { msg: string }).msg),
      [
        "the server of shared rate limits does not answer, so each process limits rates by itself",
        "the server of shared rate limits answers again",
      ],
    );
  });

  it("sign in as a user with few rights, by a password from a file, over TLS", async (context) => {
    const folder = await folderOf(context);
    const authority = await makeAuthority();
    const { cert, key } = await authority.sign();
    const files = { "ca.pem": authority.ca, "cert.pem": cert, "key.pem": key, password: "open-sesame\n" };
    for (const [name, content] of Object.entries(files)) await writeFile(join(folder, name), content);
    const at = (name: keyof typeof files) => join(folder, name);
    const tls = [
      ...["--tls-cert-file", at("cert.pem"), "--tls-key-file", at("key.pem")],
      ...["--tls-ca-cert-file", at("ca.pem"), "--tls-auth-clients", "no"],
    ];
    const redis = await startRedis({
      tls: true,
      args: [...tls, "--requirepass", "another", ...GATEWAY_USER],
    });
    context.onTestFinished(redis.stop);
    const args = [
      "--rate-limit=address=1:20",
      `--rate-limit-redis=rediss://gateway@localhost:${redis.port}`,
      `--rate-limit-redis-password-file=${at("password")}`,
      `--rate-limit-redis-ca=${at("ca.pem")}`,
    ];
    await assertSharedBucket(60, async (attempt) => {
      const own = [...args, `--rate-limit-redis-prefix=lance-gateway:${attempt}`];
      const started = [await serve(context, ...own), await serve(context, ...own)];
      return started.map(({ address }) => address);
    });
    const stranger = await serve(context, ...args.filter((arg) => !arg.includes("password")));
    await passed([stranger.address], 1);
    assert.ok((await failuresOf(stranger.address)) > 0);
  });
});
