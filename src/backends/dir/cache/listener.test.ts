import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { request } from "node:http";
import { test, vi } from "vitest";
import { DATA_KEY, INDEX_KEY, startTestCache } from "../../../../test/fixtures/dir/cache.ts";
import { S3_BUCKET, type S3Request, type StoredObject } from "../../../../test/support/s3-server.ts";
import { until } from "../../../../test/support/until.ts";

const BYTES = randomBytes(10_000);

test("a range is answered by the bucket once, and then by the cache", async (t) => {
  const { s3, send, counters } = await startTestCache(t);
  s3.put(DATA_KEY, BYTES);
  for (let times = 0; times < 3; times += 1) {
    const { status, headers, bytes } = await send("GET", DATA_KEY, { headers: { range: "bytes=1500-3999" } });
    assert.equal(status, 206);
    assert.deepEqual(bytes, BYTES.subarray(1500, 4000));
    assert.equal(headers["content-range"], "bytes 1500-3999/10000");
    assert.equal(headers["content-length"], "2500");
    assert.equal(headers["etag"], s3.objects.get(DATA_KEY)?.tag);
    assert.equal(headers["last-modified"], s3.objects.get(DATA_KEY)?.modified.toUTCString());
  }
  // Blocks of 1 KiB, whole.
  assert.deepEqual(
    s3.take().map(({ kind, headers }) => [kind, headers.range]),
    [["GET", "bytes=1024-4095"]],
  );
  assert.equal(counters.get("hitBytes"), 5_000);
  assert.equal(counters.get("fetchedBytes"), 3_072);
});

test("every form of a range has the bytes that the bucket would answer", async (t) => {
  const { s3, send } = await startTestCache(t);
  const ranges = [
    undefined,
    ...["bytes=0-0", "bytes=0-1023", "bytes=1023-1024", "bytes=9999-9999", "bytes=9000-20000", "bytes=0-"],
    ...["bytes=5000-", "bytes=-1", "bytes=-1024", "bytes=-5000", "bytes=-20000", "bytes=10000-", "bytes=-0"],
    ...["bytes=5-4", "bytes=0-1,4-5", "lines=0-1"],
  ];
  for (const range of ranges) {
    const headers: Record<string, string> = range === undefined ? {} : { range };
    s3.put("root/mutable", BYTES);
    const expected = await send("GET", "root/mutable", { headers });
    // From nothing, from its own blocks, and from all blocks.
    const key = `root/data/${Buffer.from(range ?? "whole")
      .toString("hex")
      .slice(0, 4)
      .padEnd(32, "0")}.lance`;
    s3.put(key, BYTES);
    for (let times = 0; times < 3; times += 1) {
      const found = await send("GET", key, { headers });
      assert.equal(found.status, expected.status, `${range} ${times}`);
      assert.deepEqual(found.bytes, expected.bytes, `${range} ${times}`);
      assert.equal(found.headers["content-range"], expected.headers["content-range"]);
      if (times === 1) await send("GET", key);
    }
  }
});

test("the end of an unknown object is read whose first block begins behind several pieces of the answer", async (t) => {
  const { s3, send, failures } = await startTestCache(t, { blockBytes: 2 ** 19 });
  const bytes = randomBytes(3 * 2 ** 19);
  s3.put(DATA_KEY, bytes);
  const { status, bytes: end } = await send("GET", DATA_KEY, { headers: { range: "bytes=-600000" } });
  assert.equal(status, 206);
  assert.ok(end.equals(bytes.subarray(-600_000)));
  assert.deepEqual(failures, []);
});

test("readers at the same time share requests, and neighbouring blocks are fetched together", async (t) => {
  const { s3, send } = await startTestCache(t);
  s3.put(DATA_KEY, BYTES);
  s3.delayMs = 20;
  const read = (range: string) => send("GET", DATA_KEY, { headers: { range } });
  await read("bytes=4096-4100");
  s3.take();
  const answers = await Promise.all(Array.from({ length: 8 }, () => read("bytes=2100-8000")));
  for (const { bytes } of answers) assert.deepEqual(bytes, BYTES.subarray(2100, 8001));
  assert.deepEqual(
    s3
      .take()
      .map(({ headers }) => headers.range)
      .sort(),
    ["bytes=2048-4095", "bytes=5120-8191"],
  );
});

test("a missing object, and a refusal, is passed on and not kept", async (t) => {
  const { s3, send } = await startTestCache(t);
  assert.equal((await send("GET", DATA_KEY)).status, 404);
  assert.equal((await send("HEAD", DATA_KEY)).status, 404);
  s3.put(DATA_KEY, BYTES);
  s3.intercept = (_, response) => {
    response.writeHead(503, { "retry-after": "1" }).end("<Error><Code>SlowDown</Code></Error>");
    return true;
  };
  const { status, headers, bytes } = await send("GET", DATA_KEY, { headers: { range: "bytes=0-9" } });
  assert.equal(status, 503);
  assert.equal(headers["retry-after"], "1");
  assert.match(bytes.toString(), /SlowDown/);
  s3.intercept = undefined;
  assert.deepEqual((await send("GET", DATA_KEY)).bytes, BYTES);
  assert.equal((await send("GET", DATA_KEY)).status, 200);
});

test("a request without the id of this process is refused", async (t) => {
  const { s3, send } = await startTestCache(t);
  s3.put(DATA_KEY, BYTES);
  await send("GET", DATA_KEY);
  s3.take();
  for (const accessKeyId of ["", "s3-server", "x"])
    assert.equal((await send("GET", DATA_KEY, { accessKeyId })).status, 403);
  assert.equal((await send("PUT", DATA_KEY, { accessKeyId: "s3-server", body: BYTES })).status, 403);
  assert.deepEqual(s3.take(), []);
});

test("a request that somebody without the secret has signed or changed is refused, also with the right id", async (t) => {
  const { s3, send, sign } = await startTestCache(t, { checksSignatures: true });
  s3.put(DATA_KEY, BYTES);
  assert.equal((await send("GET", DATA_KEY, { secret: "guessed" })).status, 403);
  const signed = await sign("GET", `${DATA_KEY}?a=1&b=%2F`);
  const status = async (method: string, key: string, headers: Readonly<Record<string, string>>) =>
    (await send(method, key, { signed: headers })).status;
  assert.equal(await status("GET", `${DATA_KEY}?a=1&b=%2F`, signed), 200);
  s3.take();
  for (const [method, key, changed] of [
    ["DELETE", `${DATA_KEY}?a=1&b=%2F`, {}],
    ["GET", `${INDEX_KEY}?a=1&b=%2F`, {}],
    ["GET", `${DATA_KEY}?a=2&b=%2F`, {}],
    ["GET", `${DATA_KEY}?a=1&b=%2F`, { "x-amz-date": "20260101T000000Z" }],
    ["GET", `${DATA_KEY}?a=1&b=%2F`, { host: "elsewhere" }],
    ["GET", `${DATA_KEY}?a=1&b=%2F`, { "x-amz-content-sha256": "0" }],
    ["GET", `${DATA_KEY}?a=1&b=%2F`, { authorization: `${signed["authorization"]}0` }],
  ] as const)
    assert.equal(await status(method, key, { ...signed, ...changed }), 403, JSON.stringify(changed));
  const hour = 3_600_000;
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + hour });
  t.onTestFinished(() => void vi.useRealTimers());
  assert.equal(await status("GET", `${DATA_KEY}?a=1&b=%2F`, signed), 403);
  assert.deepEqual(s3.take(), []);
});

test("a reader that leaves keeps nobody else from the bytes", async (t) => {
  const { s3, send, sign, port, failures } = await startTestCache(t);
  s3.put(DATA_KEY, BYTES);
  s3.delayMs = 50;
  const leaving = request({
    host: "127.0.0.1",
    port,
    path: `/lance/${DATA_KEY}`,
    headers: await sign("GET", DATA_KEY),
  });
  leaving.on("error", () => {});
  leaving.end();
  await until(() => s3.take().length > 0);
  const staying = send("GET", DATA_KEY);
  leaving.destroy();
  assert.deepEqual((await staying).bytes, BYTES);
  assert.deepEqual(failures, []);
});

test("a fetch that fails on its way is repeated, from where it failed", async (t) => {
  const { s3, send } = await startTestCache(t);
  s3.put(DATA_KEY, BYTES);
  await send("GET", DATA_KEY, { headers: { range: "bytes=0-0" } });
  s3.take();
  let cuts = 0;
  s3.intercept = ({ headers }, response) => {
    if (cuts++ > 0) return false;
    assert.equal(headers.range, "bytes=1024-9999");
    const [{ tag, modified }] = [...s3.objects.values()] as [StoredObject];
    const range = { "content-range": "bytes 1024-9999/10000", "content-length": 8_976 };
    response.writeHead(206, { etag: tag, "last-modified": modified.toUTCString(), ...range });
    response.write(BYTES.subarray(1_024, 5_000), () => response.destroy());
    return true;
  };
  assert.deepEqual((await send("GET", DATA_KEY)).bytes, BYTES);
  assert.deepEqual(
    s3.take().map(({ headers }) => headers.range),
    ["bytes=1024-9999", "bytes=4096-9999"],
  );
});

test("requests go to the service with its own credentials and headers", async (t) => {
  const options = { aws_session_token: "a-token", aws_server_side_encryption: "AES256" };
  const { s3, send, joined } = await startTestCache(t, { options });
  const engine = await joined.engineOptions({ ...s3.options, ...options });
  assert.equal(engine["aws_session_token"], undefined);
  assert.ok(!JSON.stringify(engine).includes("not-a-real-secret"));
  assert.equal(engine["aws_server_side_encryption"], "AES256");
  await send("PUT", "root/plain", { body: BYTES, headers: { "x-amz-server-side-encryption": "AES256" } });
  const [{ headers }] = s3.take() as [S3Request];
  assert.equal(headers["x-amz-security-token"], "a-token");
  assert.equal(headers["x-amz-server-side-encryption"], "AES256");
  assert.match(
    String(headers.authorization),
    /Credential=s3-server\/.*SignedHeaders=[^,]*x-amz-server-side-encryption/,
  );
  assert.equal(headers.host, `127.0.0.1:${s3.port}`);
});

test("a read with a condition or a key of its own goes to the bucket, also if its blocks are in memory", async (t) => {
  const { s3, send } = await startTestCache(t);
  s3.put(DATA_KEY, BYTES);
  const range = "bytes=10-19";
  const read = (headers: Readonly<Record<string, string>>) =>
    send("GET", DATA_KEY, { headers: { range, ...headers } });
  for (let times = 0; times < 2; times += 1) assert.deepEqual((await read({})).bytes, BYTES.subarray(10, 20));
  s3.take();
  for (const headers of [
    ...[{ "if-match": '"other"' }, { "if-none-match": '"other"' }, { "if-range": '"other"' }],
    { "if-modified-since": new Date(0).toUTCString() },
    { "x-amz-server-side-encryption-customer-algorithm": "AES256" },
  ]) {
    await read(headers as unknown as Record<string, string>);
    assert.equal(s3.take().length, 1, JSON.stringify(headers));
  }
  await send("GET", `${DATA_KEY}?versionId=1`, { headers: { range } });
  assert.equal(s3.take().length, 1);
  // An object that is written again through the listener is read as it is.
  const changed = randomBytes(10_000);
  await send("PUT", DATA_KEY, { body: changed });
  assert.deepEqual((await read({})).bytes, changed.subarray(10, 20));
});

test("the engine may read faster from the cache than from a bucket, unless an option says how fast", async (t) => {
  const { s3, joined } = await startTestCache(t);
  const rateOf = async (options: Readonly<Record<string, string>>) =>
    (await joined.engineOptions({ ...s3.options, ...options }))["lance_aimd_max_rate"];
  assert.equal(await rateOf({}), "20000");
  assert.equal(await rateOf({ lance_aimd_max_rate: "300" }), "300");
});

test("headers of the protocol reach the bucket with each read, and are signed", async (t) => {
  const { s3, send } = await startTestCache(t);
  s3.put(DATA_KEY, BYTES);
  const headers = { "x-amz-request-payer": "requester" };
  await send("GET", DATA_KEY, { headers: { ...headers, range: "bytes=0-9" } });
  await send("GET", DATA_KEY, { headers });
  const asked = s3.take();
  assert.equal(asked.length, 2);
  for (const each of asked) {
    assert.equal(each.headers["x-amz-request-payer"], "requester");
    assert.match(String(each.headers.authorization), /SignedHeaders=[^,]*x-amz-request-payer/);
  }
});

test("mutable names are read from the bucket each time", async (t) => {
  const { s3, send } = await startTestCache(t);
  const keys = [
    ...["root/t.lance/_versions/1.manifest", "root/t.lance/_latest.manifest", "root/.jobs/open/1"],
    ...["root/__manifest/data/37eccd10-4b43-4a88-8695-b9e19866ef8c.lance", "root/t.lance/_refs/tags/a.json"],
    ...["root/t.lance/_versions/latest_version_hint.json", "root/t.lance/.lance-reserved"],
  ];
  for (const key of keys) {
    s3.put(key, BYTES);
    await send("GET", key);
    s3.put(key, BYTES.subarray(0, 50));
    assert.deepEqual((await send("GET", key)).bytes, BYTES.subarray(0, 50), key);
  }
});

test("the files of a large table are measured while other requests are answered", async (t) => {
  const { s3, joined } = await startTestCache(t);
  const keys = Array.from(
    { length: 200_000 },
    (_, i) => `root/data/${i.toString(16).padStart(32, "0")}.lance`,
  );
  const began = performance.now();
  let [last, longest, isOver] = [began, 0, false];
  const turn = () => {
    const now = performance.now();
    [last, longest] = [now, Math.max(longest, now - last)];
    if (!isOver) setImmediate(turn);
  };
  turn();
  const sizes = await joined.measure(s3.options, S3_BUCKET, keys, new AbortController().signal);
  isOver = true;
  const took = performance.now() - began;
  longest = Math.max(longest, performance.now() - last);
  assert.equal(sizes.length, keys.length);
  assert.ok(longest < took / 3, `${longest} of ${took} ms were without a pause`);
});
