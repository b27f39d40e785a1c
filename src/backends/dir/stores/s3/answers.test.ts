import assert from "node:assert/strict";
import { Readable } from "node:stream";
import { describe, test } from "vitest";
import { failsWith } from "../../../../../test/fixtures/dir/directory-backend.ts";
import { openFakeS3, startFake } from "../../../../../test/fixtures/dir/stores.ts";
import { listNames, type ObjectStore } from "../../format/storage.ts";
import { pageOf, readListing } from "./answers.ts";
import { openS3 } from "./client.ts";
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

const page = (content: string) =>
  `<?xml version="1.0" encoding="UTF-8"?>\n<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">${content}</ListBucketResult>`;

const object = (key: string) =>
  `<Contents><Key>${key}</Key><LastModified>2026-01-02T03:04:05.000Z</LastModified><ETag>&quot;t&quot;</ETag><Size>7</Size></Contents>`;

/** Pages as services write them. */
const PAGES = {
  objects: page(
    `<Name>b</Name><Prefix>d/</Prefix><IsTruncated>false</IsTruncated>${object("d/a")}${object("d/b")}`,
  ),
  "objects and directories": page(
    `<IsTruncated>false</IsTruncated>${object("d/a")}<CommonPrefixes><Prefix>d/b/</Prefix></CommonPrefixes>`,
  ),
  "no entries": page("<Name>b</Name><Prefix></Prefix><KeyCount>0</KeyCount><IsTruncated>false</IsTruncated>"),
  "a next page": page(
    `<IsTruncated>true</IsTruncated><NextContinuationToken>a&amp;b=</NextContinuationToken>${object("d/a")}`,
  ),
  "escaped and spaced keys": page(
    `<IsTruncated>false</IsTruncated>${object("d/ &lt;a&gt; &#34;&#xfc;&apos;&amp;amp; ")}<EncodingType></EncodingType>`,
  ),
  "an owner and checksums": page(
    `<Delimiter>/</Delimiter><IsTruncated>false</IsTruncated><Contents><Owner><ID>1</ID></Owner><ChecksumAlgorithm>CRC64NVME</ChecksumAlgorithm><ETag>&#34;t&#34;</ETag><Key>d/a</Key><LastModified>2026-01-02T03:04:05Z</LastModified><Size>7</Size></Contents>`,
  ),
};

/** Pages that only the library may read. */
const OTHERS = {
  "a section of CDATA": page(`<IsTruncated>false</IsTruncated>${object("<![CDATA[d/a]]>")}`),
  "a comment": page(`<IsTruncated>false</IsTruncated><!-- ${object("d/a")} -->`),
  "prefixed names":
    '<s:ListBucketResult xmlns:s="x"><s:IsTruncated>false</s:IsTruncated></s:ListBucketResult>',
  "an entry with attributes": page(
    `<IsTruncated>false</IsTruncated><Contents a="b"><Key>d/a</Key></Contents>`,
  ),
  "a key with attributes": page(
    `<IsTruncated>false</IsTruncated><Contents><Key xml:space="preserve">d/a</Key></Contents>`,
  ),
  "an entry without a key": page(`<IsTruncated>false</IsTruncated><Contents><Size>7</Size></Contents>`),
  "two directories in an entry": page(
    `<IsTruncated>false</IsTruncated><CommonPrefixes><Prefix>d/a/</Prefix><Prefix>d/b/</Prefix></CommonPrefixes>`,
  ),
  "encoded keys": page(`<IsTruncated>false</IsTruncated><EncodingType>url</EncodingType>${object("d%2Fa")}`),
  "no end": page(`<IsTruncated>false</IsTruncated>${object("d/a")}`).slice(0, -30),
  "no word on a next page": page(object("d/a")),
  "no token of the next page": page(`<IsTruncated>true</IsTruncated>${object("d/a")}`),
  "a page of a proxy": "<html><body>be right back</body></html>",
};

describe("a page of a listing", () => {
  for (const [title, xml] of Object.entries(PAGES))
    test(`with ${title} is read as the library reads it`, async (t) => {
      const { options } = await openFakeS3(t, () => xml);
      const { sdk, client } = await openS3(options);
      const byLibrary = await client.send(new sdk.ListObjectsV2Command({ Bucket: "bucket" }));
      assert.deepEqual(readListing(xml), pageOf(byLibrary));
    });

  for (const [title, xml] of Object.entries(OTHERS))
    test(`with ${title} is left to the library`, () => {
      assert.equal(readListing(xml), undefined);
    });
});

test("a listing is asked for as the library does, and once more by the library if its page is unusual", async (t) => {
  const { store, seen, options } = await openFakeS3(t, (_, count) =>
    count < 3 ? PAGES.objects : OTHERS["a section of CDATA"],
  );
  const { sdk, client } = await openS3(options);
  await listNames(store, "d ü&");
  await client.send(new sdk.ListObjectsV2Command({ Bucket: "bucket", Prefix: "d ü&/", Delimiter: "/" }));
  const [plain, library] = seen.map(({ url }) => new URL(url, "http://store"));
  assert.equal(plain?.pathname, library?.pathname);
  const parameters = (url: URL | undefined) => [...(url?.searchParams ?? [])].sort();
  assert.deepEqual(parameters(plain), parameters(library));
  const before = seen.length;
  await listNames(store, "d");
  assert.equal(seen.length - before, 2);
});

test("after an unusual page, the library alone asks that service, and after a page of a proxy it does not", async (t) => {
  const proxy = OTHERS["a page of a proxy"];
  let xml: string = proxy;
  const { store, seen } = await openFakeS3(t, () => xml);
  const requestsOf = async (list: () => Promise<unknown>) => {
    const before = seen.length;
    await list();
    return seen.length - before;
  };
  const names = () => listNames(store, "d");
  await assert.rejects(names());
  xml = PAGES["objects and directories"];
  assert.equal(await requestsOf(names), 1);
  xml = OTHERS["a section of CDATA"];
  assert.equal(await requestsOf(names), 2);
  assert.deepEqual(await names(), ["a"]);
  assert.equal(await requestsOf(names), 1);
  xml = PAGES["objects and directories"];
  assert.equal(await requestsOf(names), 1);
  assert.deepEqual((await names()).toSorted(), ["a", "b"]);
  xml = proxy;
  await assert.rejects(names());
});
