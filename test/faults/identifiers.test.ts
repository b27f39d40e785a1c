import assert from "node:assert/strict";
import fc from "fast-check";
import { afterAll, beforeAll, describe, test } from "vitest";
import type { LanceClient, ProtocolClient } from "../support/client.ts";
import { refused } from "../support/expect.ts";
import { createGrpcClient } from "../support/grpc-client.ts";
import { jsonOf, sendHttp } from "../support/http.ts";
import { type DirectoryServer, startDirectoryServer } from "../support/server.ts";

/** A name as ADR 37 allows it: no outer spaces, not only dots, no separators, not even encoded, and no wildcards. */
const GOOD = /^(?!\s)(?!\.+$)(?!.*%(?:2f|5c))[^$'*?/\\\p{Cc}]+(?<!\s)$/iu;

/** Pieces that are easy to decode twice or to confuse with something else. */
const pieces = ["a", "A", "z", "9", ".", "..", "-", "_", "+", "%", "$", "$$", "/", "#", "?", "&", " ", "é"];
const escapes = [
  "%20",
  "%23",
  "%2523",
  "%24",
  "%2524",
  "%2B",
  "%2b",
  "%2E",
  "%2e",
  "%2F",
  "%252F",
  "%C3",
  "%",
  "%zz",
];

/** A name as text in a path: any of the pieces, encoded or not. */
const rawName = fc
  .array(fc.constantFrom(...pieces.filter((piece) => !"/?# é".includes(piece)), ...escapes), {
    minLength: 1,
    maxLength: 4,
  })
  .map((parts) => parts.join(""));

/** Decodes a path exactly once; returns undefined for an invalid path. */
function decoded(raw: string): string | undefined {
  try {
    return decodeURIComponent(raw);
  } catch {
    return undefined;
  }
}

describe("identifiers over REST", () => {
  let server: DirectoryServer;
  let grpc: ProtocolClient;
  let client: LanceClient;
  let parents = 0;
  beforeAll(async () => {
    server = await startDirectoryServer({}, {}, "unicode");
    grpc = createGrpcClient(server.port);
    client = grpc.client;
  });
  afterAll(async () => {
    grpc.close();
    await server.close();
  });

  async function freshParent(): Promise<string> {
    parents += 1;
    const name = `p${parents}`;
    await client.createNamespace({ id: [name] });
    return name;
  }

  test("a path is decoded once: it creates exactly the name that it contains, or nothing", async () => {
    const parent = await freshParent();
    const created = new Set<string>();
    const property = fc.asyncProperty(rawName, async (raw) => {
      const name = decoded(raw);
      const allowed = name !== undefined && GOOD.test(name);
      const path = `/v1/namespace/${parent}$${raw}/create`;
      const { status } = await sendHttp(server.port, { path, body: "{}" });
      assert.equal(status, allowed ? (created.has(name) ? 409 : 200) : 400, path);
      if (allowed) {
        created.add(name);
        await client.namespaceExists({ id: [parent, name] });
        const found = await sendHttp(server.port, {
          path: `/v1/namespace/${parent}$${raw}/exists`,
          body: "{}",
        });
        assert.equal(found.status, 200);
      }
      const { namespaces } = await client.listNamespaces({ id: [parent] });
      assert.deepEqual(namespaces.toSorted(), [...created].sort());
    });
    await fc.assert(property, { numRuns: 150, seed: 7 });
  });

  test("every encoding of a valid name leads to one object", async () => {
    const parent = await freshParent();
    await client.createNamespace({ id: [parent, "a.b-c_d"] });
    const character = (text: string) =>
      fc.constantFrom(
        text,
        `%${text.charCodeAt(0).toString(16)}`,
        `%${text.charCodeAt(0).toString(16).toUpperCase()}`,
      );
    const spelling = fc.tuple(...[..."a.b-c_d"].map(character)).map((characters) => characters.join(""));
    const property = fc.asyncProperty(spelling, fc.constantFrom("$", "%24"), async (raw, delimiter) => {
      const path = `/v1/namespace/${parent}${delimiter}${raw}/exists`;
      assert.equal((await sendHttp(server.port, { path, body: "{}" })).status, 200, path);
    });
    await fc.assert(property, { numRuns: 50, seed: 7 });
  });

  test("an object created under a list of names is found under exactly these, with any delimiter", async () => {
    const parent = await freshParent();
    const name = fc.stringMatching(/^[A-Za-z0-9_.-]{1,8}$/).filter((text) => GOOD.test(text));
    const delimiter = fc.constantFrom("$", "/", "::", "$$", "#", "%", "+", " ", "é", "|");
    const property = fc.asyncProperty(name, name, delimiter, async (outer, inner, separator) => {
      for (const id of [
        [parent, outer],
        [parent, outer, inner],
      ]) {
        await client.createNamespace({ id }).catch(() => client.namespaceExists({ id }));
        const path = encodeURIComponent(id.join(separator));
        const query = new URLSearchParams({ delimiter: separator });
        const answer = await sendHttp(server.port, {
          path: `/v1/namespace/${path}/exists?${query}`,
          body: "{}",
        });
        assert.equal(answer.status, 200, `${id} with ${separator}`);
      }
      const { namespaces } = await client.listNamespaces({ id: [parent, outer] });
      assert.ok(namespaces.includes(inner));
    });
    await fc.assert(property, { numRuns: 50, seed: 7 });
  });

  test("a doubled, leading or trailing delimiter is refused, and a dot segment is a name", async () => {
    const parent = await freshParent();
    await client.createNamespace({ id: [parent, "a"] });
    for (const raw of [
      `${parent}$$a`,
      `$${parent}$a`,
      `${parent}$a$`,
      `${parent}%24%24a`,
      "$$",
      "..",
      ".",
      "%2e%2e",
    ]) {
      const answer = await sendHttp(server.port, { path: `/v1/namespace/${raw}/create`, body: "{}" });
      assert.equal(answer.status, 400, raw);
      assert.equal(jsonOf(answer)["code"], 13);
    }
    const { status } = await sendHttp(server.port, {
      path: `/v1/namespace/x/../${parent}/exists`,
      body: "{}",
    });
    assert.equal(status, 404);
  });

  test("route and body must name one object", async () => {
    const parent = await freshParent();
    await client.declareTable({ id: [parent, "t"] });
    const path = `/v1/table/${parent}$t/exists`;
    for (const [id, status] of [
      [[parent, "t"], 200],
      [null, 200],
      [[parent], 400],
      [[`${parent}$t`], 400],
      [[parent, "T"], 400],
      [[parent, "t", ""], 400],
    ] as const) {
      const answer = await sendHttp(server.port, { path, body: JSON.stringify({ id }) });
      assert.equal(answer.status, status, JSON.stringify(id));
    }
    const drop = sendHttp(server.port, { path: `/v1/table/${parent}$t/drop`, body: '{"id":["other"]}' });
    assert.equal((await drop).status, 400);
    await client.tableExists({ id: [parent, "t"] });
  });

  test("a plus in the path is a plus, or a space where the body says so", async () => {
    const parent = await freshParent();
    const path = `/v1/namespace/${parent}$a+b/exists`;
    for (const body of [
      "{}",
      JSON.stringify({ id: [parent, "a b"] }),
      JSON.stringify({ id: [parent, "a+b"] }),
    ]) {
      assert.equal((await sendHttp(server.port, { path, body })).status, 404, body);
    }
    const wrong = JSON.stringify({ id: [parent, "ab"] });
    assert.equal((await sendHttp(server.port, { path, body: wrong })).status, 400);
    await refused("NamespaceNotFound", client.namespaceExists({ id: [parent, "a b"] }));
  });
});
