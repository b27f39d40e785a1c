import assert from "node:assert/strict";
import { describe, type TestContext, test } from "vitest";
import { type Answer, openFakeS3, type Seen } from "../../../../../test/fixtures/dir/stores.ts";
import { openS3 } from "./client.ts";

const bytes = new Uint8Array(Buffer.from("ours"));

/** Header that the library adds to each of its requests, and plain ones lack. */
const BY_LIBRARY = "amz-sdk-invocation-id";

/** Returns which way each request came. */
const waysOf = (seen: readonly Seen[]) =>
  seen.map(({ headers }) => (BY_LIBRARY in headers ? "library" : "plain"));

const isDated = ({ headers }: Seen, from: number) => {
  const at = String(headers["x-amz-date"]).replace(/(....)(..)(..)T(..)(..)(..)Z/, "$1-$2-$3T$4:$5:$6Z");
  return Math.abs(Date.parse(at) - from) < 60_000;
};

/** Opens a store of a service whose clock is an hour ahead, and that refuses requests of another time. */
async function openAhead(t: TestContext, more: Record<string, string>) {
  const ahead = () => Date.now() + 3_600_000;
  const dated = () => ({ date: new Date(ahead()).toUTCString() });
  const answer = (request: Seen): Answer =>
    isDated(request, ahead()) ? [200, undefined, dated()] : [403, "RequestTimeTooSkewed", dated()];
  return openFakeS3(t, answer, more);
}

describe("a small request to S3", () => {
  test("has the target, the headers and the body that the library's would have", async (t) => {
    const { store, seen, options } = await openFakeS3(t, () => [200]);
    const { sdk, client } = await openS3(options);
    const Key = "a b/ü!'()*~+&=,@:%2F$";
    await store.put(Key, bytes);
    await client.send(new sdk.PutObjectCommand({ Bucket: "bucket", Key, Body: bytes }));
    await store.getRange(Key, 2, 9);
    await client.send(new sdk.GetObjectCommand({ Bucket: "bucket", Key, Range: "bytes=2-8" }));
    await store.head(Key);
    await client.send(new sdk.HeadObjectCommand({ Bucket: "bucket", Key }));
    assert.deepEqual(waysOf(seen), ["plain", "library", "plain", "library", "plain", "library"]);
    for (let at = 0; at < seen.length; at += 2) {
      const [plain, library] = seen.slice(at, at + 2) as [Seen, Seen];
      assert.equal(plain.url.split("?")[0], library.url.split("?")[0]);
      assert.deepEqual([plain.method, plain.body], [library.method, library.body]);
      for (const name of ["host", "content-type", "content-length", "range", "x-amz-content-sha256"])
        assert.equal(plain.headers[name], library.headers[name], name);
      assert.match(
        plain.headers.authorization ?? "",
        /^AWS4-HMAC-SHA256 Credential=id\/\d{8}\/us-east-1\/s3\//,
      );
    }
  });

  test("leaves its repetitions to the library", async (t) => {
    const { store, seen } = await openFakeS3(t, (_, count) => (count < 4 ? [500, "InternalError"] : "ours"), {
      client_max_retries: "3",
    });
    assert.equal(Buffer.from((await store.get("k")) ?? []).toString(), "ours");
    assert.deepEqual(waysOf(seen), ["plain", "library", "library", "library"]);
  });

  test("is made no more often than the options allow", async (t) => {
    for (const retries of [0, 2]) {
      const { store, seen } = await openFakeS3(t, () => [500, "InternalError"], {
        client_max_retries: String(retries),
      });
      await assert.rejects(store.get("k"));
      assert.equal(seen.length, 1 + retries);
    }
  });

  test("fails by refusals that only other requests expect", async (t) => {
    for (const status of [404, 409, 412, 416]) {
      const { store } = await openFakeS3(t, () => [status, "Refused"]);
      await assert.rejects(store.put("k", bytes), String(status));
      if (status !== 404) await assert.rejects(store.get("k"), String(status));
    }
  });

  test("that is refused for certain is not repeated", async (t) => {
    const { store, seen } = await openFakeS3(t, () => [403, "AccessDenied"]);
    for (const request of [() => store.get("k"), () => store.put("k", bytes), () => store.head("k")]) {
      await assert.rejects(request);
    }
    // The library sends repetitions. On a slow machine, a read is also sent beside the first.
    assert.deepEqual([...new Set(waysOf(seen))], ["plain"]);
    assert.deepEqual([...new Set(seen.map(({ method }) => method))], ["GET", "PUT", "HEAD"]);
  });

  test("is repeated by the library with its clock corrected, and the next ones have the right time", async (t) => {
    const { store, seen } = await openAhead(t, {});
    await store.put("k", bytes);
    await store.put("k", bytes);
    await store.head("k");
    assert.deepEqual(waysOf(seen), ["plain", "library", "library", "plain", "plain"]);
  });

  test("under a condition, which is sent once, has the time that an earlier request has found", async (t) => {
    const { store, seen } = await openAhead(t, {});
    await store.head("k");
    assert.equal(await store.putIfAbsent("k", bytes), true);
    assert.equal(await store.deleteTagged("k", '"tag"'), true);
    assert.deepEqual(
      seen.map(({ method }) => method),
      ["HEAD", "HEAD", "HEAD", "PUT", "DELETE"],
    );
  });

  test("reads an object that has no bytes, and one that is missing", async (t) => {
    const { store } = await openFakeS3(t, ({ url }) => (url.includes("none") ? [404, "NoSuchKey"] : [200]));
    assert.deepEqual([...((await store.get("k")) ?? [1])], []);
    assert.equal(await store.get("none"), undefined);
    assert.equal(await store.getTail("none", 3), undefined);
    assert.equal(await store.head("none"), undefined);
  });

  test("with a large body goes through the library", async (t) => {
    const { store, seen } = await openFakeS3(t, () => [200]);
    await store.put("k", new Uint8Array(2 ** 20 + 1));
    assert.equal(await store.putIfAbsent("k", new Uint8Array(2 ** 20 + 1)), true);
    assert.deepEqual(waysOf(seen), ["library", "library"]);
  });

  test("has no signature if the options say so", async (t) => {
    const { store, seen } = await openFakeS3(t, () => "ours", { skip_signature: "true" });
    await store.get("k");
    assert.equal(seen[0]?.headers.authorization, undefined);
  });
});
