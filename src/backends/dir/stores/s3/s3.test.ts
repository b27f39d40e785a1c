import assert from "node:assert/strict";
import { inspect } from "node:util";
import { describe, type TestContext, test } from "vitest";
import { failsWith, openClient, silent } from "../../../../../test/fixtures/dir/directory-backend.ts";
import {
  type Answer,
  NOTHING,
  openFakeS3,
  SECRET,
  type Seen,
} from "../../../../../test/fixtures/dir/stores.ts";
import type { ErrorName } from "../../../../namespace/errors.ts";
import { isLanceError } from "../../../../namespace/errors.ts";
import { createDirectoryBackend } from "../../index.ts";

const bytes = new Uint8Array(Buffer.from("ours"));

const FAILURES: readonly (readonly [answer: Answer, name: ErrorName, message: RegExp])[] = [
  [[503, "SlowDown"], "Throttling", /fewer requests/],
  [[429, "TooManyRequests"], "Throttling", /fewer requests/],
  [[500, "InternalError"], "ServiceUnavailable", /catalog storage is failing/],
  [[403, "AccessDenied"], "ServiceUnavailable", /denies access/],
  [[403, "SignatureDoesNotMatch"], "ServiceUnavailable", /denies access/],
  [[400, "ExpiredToken"], "ServiceUnavailable", /denies access/],
  [[400, "InvalidToken"], "ServiceUnavailable", /denies access/],
  [[400, "RequestTimeout"], "ServiceUnavailable", /does not answer/],
  [[404, "NoSuchBucket"], "ServiceUnavailable", /bucket of the catalog does not exist/],
  [[400, "MalformedXML"], "Internal", /log has it/],
  ["hang", "ServiceUnavailable", /does not answer/],
  ["reset", "ServiceUnavailable", /does not answer/],
];

/** Opens a store whose answer to a conditional write is late or lost, but whose objects are real. */
async function openKeeping(t: TestContext, hangs: (request: Seen, count: number) => boolean, lands: boolean) {
  const objects = new Map<string, string>();
  const opened = await openFakeS3(
    t,
    (request, count) => {
      const { method, body } = request;
      const [url = ""] = request.url.split("?");
      const hung = hangs(request, count);
      if (method === "PUT" && (!hung || lands)) {
        if (objects.has(url)) return hung ? "hang" : [412, "PreconditionFailed"];
        objects.set(url, body);
      }
      if (hung) return "hang";
      return method === "GET" ? (objects.get(url) ?? [404, "NoSuchKey"]) : [200];
    },
    { timeout: "2s" },
  );
  return { ...opened, objects };
}

const isFirst = (_: Seen, count: number) => count === 1;

// Most of their time passes in pauses before repetitions and in time limits.
describe("a bucket of S3", { concurrent: true }, () => {
  for (const [answer, name, message] of FAILURES) {
    test(`${answer} of the storage is ${name}, without secrets`, async (t) => {
      const { store } = await openFakeS3(t, () => answer, answer === "hang" ? { timeout: "200ms" } : {});
      const requests = [
        () => store.get("k"),
        () => store.put("k", bytes),
        () => store.exists("d"),
        () => store.getTail("k", 5),
      ];
      for (const request of requests) {
        await assert.rejects(request, (error) => {
          assert.ok(isLanceError(error, name), String(error));
          assert.match(error.message, message);
          assert.equal(inspect(error, { depth: 20 }).includes(SECRET), false);
          assert.equal(error.headers["retry-after"], name === "Throttling" ? "1" : undefined);
          return true;
        });
      }
    });
  }

  test("a HEAD of a bucket whose token has expired says so, although its answer has no code", async (t) => {
    const { store } = await openFakeS3(t, () => [400, "ExpiredToken"]);
    await assert.rejects(store.head("k"), /denies access/);
  });

  test("a failure that passes is not seen", async (t) => {
    const { store, seen } = await openFakeS3(t, (_, count) => (count % 2 === 1 ? [503, "SlowDown"] : [200]));
    await store.put("k", bytes);
    assert.equal((await store.head("k"))?.eTag, '"tag"');
    assert.equal(seen.length, 4);
  });

  test("a conditional write whose answer was lost knows its own object", async (t) => {
    for (const [there, created] of [
      ["ours", true],
      ["theirs", false],
    ] as const) {
      const { store, seen } = await openFakeS3(t, ({ method }, count) => {
        if (method === "GET") return there;
        return count === 1 ? "reset" : [412, "PreconditionFailed"];
      });
      assert.equal(await store.putIfAbsent("k", bytes), created);
      assert.deepEqual(
        seen.map(({ method, headers }) => [method, headers["if-none-match"]]),
        [
          ["PUT", "*"],
          ["PUT", "*"],
          ["GET", undefined],
        ],
      );
    }
  });

  for (const lands of [true, false]) {
    test(`a conditional write that hangs and ${lands ? "lands" : "is lost"} is ours`, async (t) => {
      const { store, objects, seen } = await openKeeping(t, isFirst, lands);
      assert.equal(await store.putIfAbsent("k", bytes), true);
      assert.equal(objects.size, 1);
      assert.deepEqual(
        seen.map(({ method }) => method),
        lands ? ["PUT", "PUT", "GET"] : ["PUT", "PUT"],
      );
    });
  }

  test("a conditional write that hangs while another writer creates the object is not ours", async (t) => {
    const { store, objects } = await openKeeping(t, isFirst, false);
    const created = store.putIfAbsent("k", bytes);
    objects.set("/bucket/k", "theirs");
    assert.equal(await created, false);
  });

  test("each small read, and write of a new object, that hangs is made once more at once, and the hung request is ended", async (t) => {
    const hung = new Set<string>();
    const { store, seen, ended } = await openFakeS3(
      t,
      ({ method, url, headers }) => {
        const request = `${method} ${url} ${headers.range ?? ""}`;
        if (!hung.has(request)) {
          hung.add(request);
          return "hang";
        }
        if (method === "HEAD" || method === "PUT") return [200];
        return url.includes("list-type") ? NOTHING : "ours";
      },
      { timeout: "30s", client_max_retries: "0" },
    );
    const found = await Promise.all([store.get("k"), store.getTail("k", 4), store.getRange("k", 0, 4)]);
    await store.create("new", bytes);
    assert.deepEqual(
      found.map((each) => Buffer.from(each && "bytes" in each ? each.bytes : (each ?? [])).toString()),
      ["ours", "ours", "ours"],
    );
    assert.equal((await store.head("h"))?.eTag, '"tag"');
    assert.equal(await store.exists("d"), false);
    assert.equal(seen.length, 2 * hung.size);
    while (ended.length < hung.size) await new Promise(setImmediate);
  });

  test("a write over another object that hangs is not made twice at once", async (t) => {
    const { store, seen, ended } = await openFakeS3(t, (_, count) => (count === 1 ? "hang" : [200]), {
      timeout: "1s",
    });
    await store.put("k", bytes);
    assert.deepEqual([seen.length, ended.length], [2, 1]);
  });

  test("a conditional write that meets another one is tried again, one that is refused is not", async (t) => {
    const conflict = await openFakeS3(t, (_, count) =>
      count < 3 ? [409, "ConditionalRequestConflict"] : [200],
    );
    assert.equal(await conflict.store.putIfAbsent("k", bytes), true);
    assert.equal(conflict.seen.length, 3);
    const denied = await openFakeS3(t, () => [403, "AccessDenied"]);
    await assert.rejects(denied.store.putIfAbsent("k", bytes), (e) => isLanceError(e, "ServiceUnavailable"));
    assert.equal(denied.seen.length, 1);
  });

  test("a conditional write that the service has waited for too long is tried again", async (t) => {
    const { store, seen } = await openFakeS3(t, (_, count) => (count < 3 ? [400, "RequestTimeout"] : [200]));
    assert.equal(await store.putIfAbsent("k", bytes), true);
    assert.equal(seen.length, 3);
  });

  test("a change of an object as it was read names its tag, and is the storage's to refuse", async (t) => {
    const { store, seen } = await openFakeS3(t, ({ method, headers }) => {
      if (method === "GET") return [200];
      return headers["if-match"] === '"tag"' ? [200] : [412, "PreconditionFailed"];
    });
    const { tag = "" } = (await store.getTagged("k")) ?? {};
    assert.deepEqual(
      [await store.replace("k", bytes, tag), await store.deleteTagged("k", tag)],
      [true, true],
    );
    const old = '"old"';
    assert.deepEqual(
      [await store.replace("k", bytes, old), await store.deleteTagged("k", old)],
      [false, false],
    );
    assert.deepEqual(
      seen.map(({ method, headers }) => [method, headers["if-match"]]),
      [
        ["GET", undefined],
        ["PUT", '"tag"'],
        ["DELETE", '"tag"'],
        ["PUT", '"old"'],
        ["DELETE", '"old"'],
      ],
    );
  });

  test("a replacement without an answer that another write follows has an unknown outcome", async (t) => {
    const { store } = await openFakeS3(
      t,
      ({ method }, count) => {
        if (method === "GET") return "theirs";
        return count === 1 ? "reset" : [412, "PreconditionFailed"];
      },
      { timeout: "2s" },
    );
    // The storage may have made the replacement, and then another writer's.
    await assert.rejects(store.replace("k", bytes, '"old"'), failsWith("ServiceUnavailable"));
  });

  test("a storage that refuses the condition as unknown gets the change without it", async (t) => {
    const { store, seen } = await openFakeS3(t, ({ headers }) =>
      headers["if-match"] === undefined ? [200] : [501, "NotImplemented"],
    );
    assert.equal(await store.replace("k", bytes, '"tag"'), true);
    assert.equal(await store.deleteTagged("k", '"tag"'), true);
    assert.deepEqual(
      seen.map(({ method }) => method),
      ["PUT", "PUT", "DELETE", "DELETE"],
    );
  });

  test("a delete that fails for one object of many is a failure", async (t) => {
    const listing =
      "<ListBucketResult><Contents><Key>d/a</Key></Contents><Contents><Key>d/b</Key></Contents></ListBucketResult>";
    const { store, seen } = await openFakeS3(t, ({ method }) =>
      method === "GET"
        ? listing
        : "<DeleteResult><Error><Key>d/b</Key><Code>AccessDenied</Code></Error></DeleteResult>",
    );
    await assert.rejects(store.deleteDirectory("d"), (error) => isLanceError(error, "ServiceUnavailable"));
    assert.match(seen.at(-1)?.body ?? "", /<Key>d\/a<\/Key>.*<Key>d\/b<\/Key>/);
  });

  test("a storage that ignores the condition is served for reading only", async (t) => {
    const { options, seen } = await openFakeS3(t, ({ method }) => (method === "GET" ? NOTHING : [200]));
    const client = await openClient(t, "s3://bucket/root", { storageOptions: options });
    const refused = (error: unknown) =>
      isLanceError(error, "Unsupported") && /no conditional writes/.test(error.message);
    await assert.rejects(client.call("createNamespace", "ns"), refused);
    await assert.rejects(client.call("dropTable", "t"), refused);
    assert.deepEqual((await client.call("listTables", "$")).tables, []);
    const probes = seen.filter(({ url }) => url.includes(".probe-"));
    assert.deepEqual(
      probes.map(({ method }) => method),
      ["PUT", "PUT", "DELETE"],
    );
    assert.deepEqual(seen.filter(({ method }) => method !== "GET").length, probes.length);
  });

  test("a storage that does not answer is said at start, in one line", async (t) => {
    const { options } = await openFakeS3(t, () => [404, "NoSuchBucket"]);
    await assert.rejects(
      createDirectoryBackend({ root: "s3://bucket/root", storageOptions: options, log: silent }),
      (error: Error) =>
        /^cannot use s3:\/\/bucket\/root as the directory of a catalog: .*does not exist$/.test(
          error.message,
        ),
    );
  });
});
