import assert from "node:assert/strict";
import { create, type MessageShape } from "@bufbuild/protobuf";
import { describe, it } from "vitest";
import { ann } from "../../../test/fixtures/auth/principal.ts";
import { beginCall } from "../../../test/support/caller.ts";
import { createRandom } from "../../../test/support/random.ts";
import { seedOf } from "../../../test/support/seed.ts";
import { fakeBackend } from "../../../test/support/server.ts";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import type { Siblings } from "../../namespace/authorizer.ts";
import type { Principal } from "../../namespace/call/principal.ts";
import { isLanceError } from "../../namespace/errors.ts";
import { joinIdentifier } from "../../namespace/identifier.ts";
import { callBackend, type Database } from "../call/databases.ts";
import { compose } from "../call/interceptor.ts";
import { serviceOf } from "../create-service.ts";
import { createNameFinder, filterListings } from "./filter-listings.ts";
import { createPermissions } from "./permissions.ts";
import { createTokenSeal } from "./token-seal.ts";

const { listTables, listAllTables } = LanceNamespaceService.method;
const NAMES = ["a", "b", "hidden", "secret", "x", "y"];
const VISIBLE: ReadonlySet<string> = new Set(["a", "b", "x", "y"]);

interface Given {
  readonly facts?: Partial<Database["backend"]>;
  readonly siblings?: Siblings;
}

/** Lists tables of a backend whose tokens are a prefix and the name of the entry at a distance from the end of the page. */
function listing(prefix: string, distance: number, { facts = {}, siblings }: Given = {}) {
  const limits: number[] = [];
  const backend = fakeBackend({
    async listTables({ pageToken, limit = 0 }) {
      limits.push(limit);
      const at = pageToken ? NAMES.indexOf(pageToken.slice(prefix.length)) - distance + 1 : 0;
      const tables = NAMES.slice(at, at + limit);
      const more = NAMES.length > at + limit;
      const token = more ? `${prefix}${NAMES[at + limit - 1 + distance]}` : undefined;
      return create(listTables.output, { tables, ...(token !== undefined && { pageToken: token }) });
    },
  });
  const databases = new Map([
    [undefined, { backend: { ...backend, ...facts }, limits: { maxUploadBytes: 1 } }],
  ]);
  const authorizer = {
    allows: async (_: Principal, { object }: { object: { id: readonly string[] } }) =>
      VISIBLE.has(object.id.at(-1) ?? ""),
    allowsSiblings: () => siblings,
    close() {},
  };
  const filter = filterListings(
    createPermissions(authorizer, databases),
    databases,
    createTokenSeal("secret"),
  );
  const service = serviceOf(compose([filter], callBackend(databases)));
  const list = async (pageToken: string | undefined, principal = ann) => {
    const request = create(listTables.input, { limit: 2, ...(pageToken !== undefined && { pageToken }) });
    const answer = await service.unary(listTables, request, beginCall(listTables, { principal }));
    return answer as MessageShape<typeof listTables.output>;
  };
  return { list, limits };
}

describe("filtered listings of an upstream whose tokens name the next entry", () => {
  const { list } = listing("next:", 1);

  it("have tokens that hide the name, and go on after it", async () => {
    const { tables, pageToken = "" } = await list(undefined);
    assert.deepEqual(tables, ["a", "b"]);
    assert.doesNotMatch(pageToken, /next|hidden/);
    assert.doesNotMatch(Buffer.from(pageToken.slice(1), "base64url").toString("latin1"), /next|hidden/);
    const rest = await list(pageToken);
    assert.deepEqual([rest.tables, rest.pageToken || undefined], [["x", "y"], undefined]);
  });

  it("refuse the token of another caller", async () => {
    const { pageToken } = await list(undefined);
    const other = list(pageToken, { ...ann, name: "bob" });
    await assert.rejects(other, (error) => isLanceError(error, "InvalidInput"));
  });
});

describe("filtered listings of an upstream whose tokens are numbers of entries", () => {
  /** Lists as an upstream that skips as many entries as the token says. */
  function numbered(siblings?: Siblings) {
    const { list } = listing("", 0, {
      siblings,
      facts: {
        operations: {
          async listTables({ pageToken = "", limit = 0 }) {
            const [at, end] = [Number(pageToken), Number(pageToken) + limit];
            const tables = NAMES.slice(at, end);
            return create(listTables.output, {
              tables,
              ...(end < NAMES.length && { pageToken: String(end) }),
            });
          },
        },
      },
    });
    return async (token?: string) => (await list(token)).tables;
  }
  const some: Siblings = { allowed: true, exceptions: ["hidden", "secret"], known: [] };
  const all: Siblings = { allowed: true, exceptions: [], known: [] };

  it("take a number of the caller for a name, so that numbers tell nothing of hidden entries", async () => {
    for (const siblings of [undefined, some]) {
      const pages = await Promise.all(["2", "3", "4"].map(numbered(siblings)));
      assert.deepEqual(pages, [
        ["a", "b"],
        ["a", "b"],
        ["a", "b"],
      ]);
    }
  });

  it("end where the upstream answers with the same page for ever", async () => {
    const { list } = listing("", 0, {
      facts: {
        operations: {
          listTables: async () => create(listTables.output, { tables: ["hidden"], pageToken: "next" }),
        },
      },
    });
    await assert.rejects(list(undefined), (error) => isLanceError(error, "ServiceUnavailable"));
  });

  it("go on after a name of the caller, as LanceDB's clients list", async () => {
    for (const siblings of [undefined, some]) {
      assert.deepEqual(await numbered(siblings)("b"), ["x", "y"]);
      assert.deepEqual(await numbered(siblings)("hi"), ["x", "y"]);
      assert.deepEqual(await numbered(siblings)("y"), []);
    }
    assert.deepEqual(await numbered(all)("b"), ["hidden", "secret"]);
  });
});

describe("filtered listings of a backend whose tokens are the last name of a page", () => {
  it("have these tokens", async () => {
    const { list } = listing("", 0, { facts: { hasPlainPageTokens: true } });
    const { tables, pageToken } = await list(undefined);
    assert.deepEqual([tables, pageToken], [["a", "b"], "b"]);
    assert.deepEqual((await list(pageToken)).tables, ["x", "y"]);
  });
});

describe("filtered listings of a namespace about which the policies decide at once", () => {
  it("are the pages of the backend, with hidden tokens", async () => {
    const siblings = { allowed: true, exceptions: [], known: [] };
    const { list, limits } = listing("next:", 1, { siblings });
    const { tables, pageToken = "" } = await list(undefined);
    assert.deepEqual([tables, limits], [["a", "b"], [2]]);
    assert.doesNotMatch(pageToken, /next|hidden/);
    assert.deepEqual((await list(pageToken)).tables, ["hidden", "secret"]);
  });

  it("are empty after a single call where everything is hidden", async () => {
    const siblings = { allowed: false, exceptions: [], known: [] };
    const { list, limits } = listing("next:", 1, { siblings });
    const { tables, pageToken } = await list(undefined);
    assert.deepEqual([tables, pageToken, limits], [[], undefined, [2]]);
  });
});

describe("filtered listings of all tables", () => {
  it("show what the caller may see, whatever delimiter it chooses", async () => {
    const ids = [["a", "b"], ["secret"], ["team", "a.b"]];
    const backend = fakeBackend({
      listAllTables: async ({ delimiter }) =>
        create(listAllTables.output, { tables: ids.map((id) => joinIdentifier(id, delimiter)) }),
    });
    const databases = new Map([[undefined, { backend, limits: { maxUploadBytes: 1 } }]]);
    const authorizer = {
      allows: async (_: Principal, { object }: { object: { id: readonly string[] } }) =>
        joinIdentifier(object.id) !== "secret",
      close() {},
    };
    const permissions = createPermissions(authorizer, databases);
    const filter = filterListings(permissions, databases, createTokenSeal("secret"));
    const service = serviceOf(compose([filter], callBackend(databases)));
    const list = async (delimiter?: string) => {
      const request = create(listAllTables.input, delimiter === undefined ? {} : { delimiter });
      const call = beginCall(listAllTables, { principal: ann });
      return ((await service.unary(listAllTables, request, call)) as { tables?: string[] }).tables;
    };
    for (const delimiter of ["e", "c", "secre", ".", "$", "~~", undefined]) {
      const expected = [
        ["a", "b"],
        ["team", "a.b"],
      ].map((id) => joinIdentifier(id, delimiter));
      assert.deepEqual(await list(delimiter), expected, String(delimiter));
    }
  });
});

const SORTED = ["a", "aa", "b", "d", "\u{1f600}", "\uff00"];

describe("the place of a name in a sorted list", () => {
  it("is found in the order of the list, also for names beside those of the list", () => {
    const find = createNameFinder(SORTED);
    const names = ["", "a", "aa", "ab", "b", "c", "d", "\u{1f600}", "\uff00", "\uffff"];
    assert.deepEqual(names.map(find), [-1, 0, 1, -1, 2, -1, 3, 4, 5, -1]);
  });

  it("is found in any order, and again", () => {
    const find = createNameFinder(SORTED);
    const random = createRandom(seedOf("TEST_SEED"));
    const names = [...SORTED, "", "ab", "c", "e", "\uffff"];
    for (let i = 0; i < 1_000; i++) {
      const name = random.pick(names);
      assert.equal(find(name), SORTED.indexOf(name), JSON.stringify(name));
    }
  });

  it("is nowhere in an empty list", () => {
    assert.equal(createNameFinder([])("a"), -1);
  });
});
