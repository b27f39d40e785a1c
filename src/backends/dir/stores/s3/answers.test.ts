import assert from "node:assert/strict";
import { Readable } from "node:stream";
import { describe, test } from "vitest";
import { failsWith } from "../../../../../test/fixtures/dir/directory-backend.ts";
import { openFakeS3, startFake } from "../../../../../test/fixtures/dir/stores.ts";
import type { ObjectStore } from "../../format/storage.ts";
import { createS3Store } from "./s3.ts";

/** A page with which a proxy in front of the service answers everything while the service is away. */
const PAGE = "<!DOCTYPE html><html><body>back <b>soon</b></body></html>";

const LISTED = "<Contents><Key>d/a</Key></Contents>";

const NO_LISTINGS: Readonly<Record<string, string>> = {
  "is empty": "",
  "is a page of a proxy": PAGE,
  "says that there is more, and not where": `<ListBucketResult><IsTruncated>true</IsTruncated>${LISTED}</ListBucketResult>`,
};

const REQUESTS: Readonly<Record<string, (store: ObjectStore) => Promise<unknown>>> = {
  write: (store) => store.put("k", Buffer.from("ours")),
  "long write": (store) => store.put("k", Buffer.alloc(2 ** 20 + 1)),
  "conditional write": (store) => store.putIfAbsent("k", Buffer.from("ours")),
  "long conditional write": (store) => store.putIfAbsent("k", Buffer.alloc(2 ** 20 + 1)),
  "streamed write": (store) => store.putStream("k", Readable.from([Buffer.from("ours")])),
  read: (store) => store.get("k"),
  "read of a part": (store) => store.getRange("k", 0, 4),
  "streamed read": (store) => store.getStream("k"),
  "look at an object": (store) => store.head("k"),
  deletion: (store) => store.delete("k"),
  "deletion of several objects": (store) => store.deleteAll(["k", "l"]),
  "deletion under a condition": (store) => store.deleteTagged("k", "tag"),
};

describe("a success that is not of S3", { concurrent: true }, () => {
  for (const [how, body] of Object.entries(NO_LISTINGS))
    test(`is not a listing if it ${how}`, async (t) => {
      const { store, seen } = await openFakeS3(t, () => body);
      const listings = [
        () => Array.fromAsync(store.list("d")),
        () => store.exists("e"),
        () => store.deleteDirectory("d"),
      ];
      for (const listing of listings) await assert.rejects(listing, failsWith("ServiceUnavailable"));
      assert.deepEqual(new Set(seen.map(({ method }) => method)), new Set(["GET"]));
    });

  for (const [name, request] of Object.entries(REQUESTS))
    test(`fails a ${name}`, async (t) => {
      const aws_endpoint = await startFake(t, (asked, response) => {
        asked.resume().on("end", () => response.end(PAGE));
      });
      const keys = { aws_access_key_id: "id", aws_secret_access_key: "secret" };
      const options = { aws_endpoint, ...keys, allow_http: "true", client_max_retries: "1" };
      const { store } = await createS3Store("bucket", options);
      await assert.rejects(request(store), failsWith("ServiceUnavailable"));
    });
});
