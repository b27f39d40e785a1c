import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { request } from "node:http";
import { test } from "vitest";
import { DATA_KEY, INDEX_KEY, startTestCache } from "../../../../test/fixtures/dir/cache.ts";
import type { StoredObject } from "../../../../test/support/s3-server.ts";
import { until } from "../../../../test/support/until.ts";

const BYTES = randomBytes(10_000);

test("conditional writes, uploads in parts, copies and deletions reach the bucket, and the cache follows", async (t) => {
  const { s3, send } = await startTestCache(t, { blockBytes: 65_536 });
  const absent = { "if-none-match": "*" };
  assert.equal(
    (await send("PUT", "root/_versions/1.manifest", { headers: absent, body: BYTES })).status,
    200,
  );
  assert.equal(
    (await send("PUT", "root/_versions/1.manifest", { headers: absent, body: BYTES })).status,
    412,
  );
  const other = { "if-match": '"other"' };
  assert.equal((await send("PUT", "root/_versions/1.manifest", { headers: other, body: BYTES })).status, 412);

  const created = await send("POST", `${INDEX_KEY}?uploads`);
  const id = /<UploadId>(.*)<\/UploadId>/.exec(created.bytes.toString())?.[1];
  const parts = [randomBytes(6 * 2 ** 20), randomBytes(1_000)];
  for (const [at, body] of parts.entries())
    assert.equal(
      (await send("PUT", `${INDEX_KEY}?partNumber=${at + 1}&uploadId=${id}`, { body })).status,
      200,
    );
  await send("POST", `${INDEX_KEY}?uploadId=${id}`, { body: Buffer.from("<CompleteMultipartUpload/>") });
  const whole = Buffer.concat(parts);
  assert.deepEqual((await send("GET", INDEX_KEY)).bytes, whole);
  assert.deepEqual(
    (await send("GET", INDEX_KEY, { headers: { range: "bytes=-1500" } })).bytes,
    whole.subarray(-1500),
  );

  await send("PUT", DATA_KEY, { body: BYTES });
  s3.take();
  assert.deepEqual((await send("GET", DATA_KEY)).bytes, BYTES);
  // An object that was written through the cache is in it.
  assert.deepEqual(s3.take(), []);
  await send("PUT", DATA_KEY, { body: whole.subarray(0, 5_000) });
  assert.deepEqual((await send("GET", DATA_KEY)).bytes, whole.subarray(0, 5_000));
  await send("PUT", DATA_KEY, { headers: { "x-amz-copy-source": `/lance/${INDEX_KEY}` } });
  assert.deepEqual((await send("GET", DATA_KEY)).bytes, whole);
  await send("DELETE", DATA_KEY);
  assert.equal((await send("GET", DATA_KEY)).status, 404);
  await send("POST", "?delete", {
    body: Buffer.from(`<Delete><Object><Key>${INDEX_KEY}</Key></Object></Delete>`),
  });
  assert.equal((await send("GET", INDEX_KEY)).status, 404);
});

test("an object that was replaced is never joined with what it was", async (t) => {
  const { s3, send } = await startTestCache(t);
  s3.put(DATA_KEY, BYTES);
  await send("GET", DATA_KEY, { headers: { range: "bytes=0-100" } });
  const other = randomBytes(9_000);
  s3.put(DATA_KEY, other);
  // Another writer has broken the rule of the format. Blocks of both are never joined: the answer breaks off, as it does for a lost connection.
  await assert.rejects(send("GET", DATA_KEY));
  assert.deepEqual((await send("GET", DATA_KEY)).bytes, other);
  assert.deepEqual(
    (await send("GET", DATA_KEY, { headers: { range: "bytes=0-100" } })).bytes,
    other.subarray(0, 101),
  );
});

test("a read that began before a write does not bring the old bytes back", async (t) => {
  const { s3, send } = await startTestCache(t);
  s3.put(DATA_KEY, BYTES);
  const hold = Promise.withResolvers<void>();
  const old = s3.objects.get(DATA_KEY);
  s3.intercept = ({ kind }, response) => {
    if (kind !== "GET") return false;
    s3.intercept = undefined;
    void hold.promise.then(() =>
      response
        .writeHead(200, {
          etag: old?.tag,
          "last-modified": new Date(0).toUTCString(),
          "content-length": 10_000,
        })
        .end(BYTES),
    );
    return true;
  };
  const reading = send("GET", DATA_KEY);
  await until(() => s3.intercept === undefined);
  const fresh = randomBytes(8_000);
  await send("PUT", DATA_KEY, { body: fresh });
  hold.resolve();
  // It asks again, since it cannot know which bytes it has.
  assert.deepEqual((await reading).bytes, fresh);
  assert.deepEqual((await send("GET", DATA_KEY)).bytes, fresh);
});

test("an upload that breaks off makes no object", async (t) => {
  const { s3, send, sign, port } = await startTestCache(t);
  const headers = { ...(await sign("PUT", DATA_KEY)), "content-length": "10000" };
  const upload = request({ host: "127.0.0.1", port, method: "PUT", path: `/lance/${DATA_KEY}`, headers });
  upload.on("error", () => {});
  upload.write(BYTES.subarray(0, 5_000));
  await until(() => s3.take().length > 0);
  upload.destroy();
  s3.put(INDEX_KEY, BYTES);
  assert.deepEqual((await send("GET", INDEX_KEY)).bytes, BYTES);
  assert.equal(s3.objects.has(DATA_KEY), false);
});

test("objects with a key of the client are neither kept nor answered from the cache", async (t) => {
  const { s3, send } = await startTestCache(t);
  const headers = {
    "x-amz-server-side-encryption-customer-algorithm": "AES256",
    "x-amz-server-side-encryption-customer-key": "a2V5",
    "x-amz-server-side-encryption-customer-key-md5": "bWQ1",
  };
  await send("PUT", DATA_KEY, { body: BYTES, headers });
  s3.take();
  for (let times = 0; times < 2; times += 1) {
    await send("GET", DATA_KEY, { headers });
    await send("HEAD", DATA_KEY, { headers });
  }
  const asked = s3.take();
  assert.deepEqual(
    asked.map(({ kind }) => kind),
    ["GET", "HEAD", "GET", "HEAD"],
  );
  for (const each of asked) assert.equal(each.headers["x-amz-server-side-encryption-customer-key"], "a2V5");
  // A service that says so in its answer.
  s3.intercept = ({ kind }, response) => {
    if (kind !== "GET") return false;
    const [{ tag, modified }] = [...s3.objects.values()] as [StoredObject];
    response.writeHead(200, {
      ...{ etag: tag, "last-modified": modified.toUTCString(), "content-length": BYTES.length },
      "x-amz-server-side-encryption-customer-algorithm": "AES256",
    });
    response.end(BYTES);
    return true;
  };
  await send("GET", DATA_KEY);
  s3.take();
  await send("GET", DATA_KEY);
  assert.notDeepEqual(s3.take(), []);
});

test("a body with a framing or an encoding of its own is not kept as the object", async (t) => {
  const { s3, send } = await startTestCache(t);
  const framed = Buffer.from("5;chunk\r\nhello\r\n0\r\n\r\n");
  for (const headers of [
    { "content-encoding": "aws-chunked" },
    { "content-encoding": "gzip" },
    { "x-amz-content-sha256": "STREAMING-UNSIGNED-PAYLOAD-TRAILER" },
  ] as readonly Record<string, string>[]) {
    assert.equal((await send("PUT", DATA_KEY, { body: framed, headers })).status, 200);
    // The service has taken the framing off.
    s3.put(DATA_KEY, Buffer.from("hello"));
    s3.take();
    assert.equal((await send("GET", DATA_KEY)).bytes.toString(), "hello");
    assert.notDeepEqual(s3.take(), []);
  }
});
