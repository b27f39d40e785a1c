import assert from "node:assert/strict";
import { pino } from "pino";
import { describe, it, type TestContext } from "vitest";
import { type Asked, accessTo, allowing, ann, startOpa } from "../../../test/fixtures/auth/opa.ts";
import { isLanceError } from "../../namespace/errors.ts";
import { createDecisionCache, createOpaAuthorizer } from "./opa.ts";
import { createOpaServer, type OpaServerOptions } from "./server.ts";

type Answer = Parameters<typeof startOpa>[1];

async function authorizerOf(
  context: TestContext,
  answer: Answer,
  { maxAgeMs = 0, ...options }: Partial<OpaServerOptions> & { maxAgeMs?: number } = {},
) {
  const { origin, asked } = await startOpa(context.onTestFinished, answer);
  const logged: { level: number; msg: string }[] = [];
  const log = pino({}, { write: (line: string) => void logged.push(JSON.parse(line)) });
  const server = createOpaServer({
    url: `${origin}/v1/data/lance/gateway/allowed`,
    timeoutMs: 60_000,
    ...options,
  });
  const authorizer = createOpaAuthorizer({ server, maxAgeMs, log });
  context.onTestFinished(() => authorizer.close());
  return { ...authorizer, asked, logged };
}

const isUnavailable = (error: unknown) =>
  isLanceError(error, "ServiceUnavailable") && error.headers["retry-after"] === "1";

describe("the decision of a policy server", () => {
  it("is asked for with the caller and everything that it wants, by the names that Cedar's policies use", async (context) => {
    const { allowsEach, asked } = await authorizerOf(
      context,
      allowing(({ resource }) => resource.name !== "b"),
      {
        token: () => "t1",
      },
    );
    const inSales = {
      ...accessTo("b"),
      object: { kind: "Namespace", database: "sales", id: ["n", "b"] },
    } as const;
    assert.deepEqual(await allowsEach?.(ann, [accessTo("team", "a"), inSales, accessTo("c")]), [
      true,
      false,
      true,
    ]);
    assert.equal(asked.length, 1);
    const [{ path, headers, input } = assert.fail()] = asked;
    assert.deepEqual([path, headers.authorization], ["/v1/data/lance/gateway/allowed", "Bearer t1"]);
    const { by, name, role, groups, claims } = ann;
    assert.deepEqual(input.principal, { id: "oidc:ann", by, name, role, groups, claims });
    const action = { id: "QueryTable", kind: "read" };
    assert.deepEqual(input.accesses.slice(0, 2), [
      {
        action,
        resource: {
          ...{ type: "Table", id: "team$a", name: "a", path: ["team", "a"], database: "default" },
          within: ["Table::team$a", "Namespace::team", "Database::default"],
        },
      },
      {
        action,
        resource: {
          ...{ type: "Namespace", id: "sales$n$b", name: "b", path: ["n", "b"], database: "sales" },
          within: ["Namespace::sales$n$b", "Namespace::sales$n", "Database::sales"],
        },
      },
    ]);
  });

  it("lets other work run while very many decisions are looked up that it remembers", async () => {
    let asked = 0;
    const server = {
      async ask() {
        asked += 1;
        return [];
      },
      close() {},
    };
    const log = pino({ level: "silent" });
    const { allowsEach } = createOpaAuthorizer({ server, maxAgeMs: 600_000, log });
    const accesses = Array.from({ length: 60_000 }, (_, i) => accessTo("team", `t${i}`));
    await allowsEach?.(ann, accesses);
    assert.equal(asked, 30);
    let turns = 0;
    const other = setInterval(() => {
      turns += 1;
    });
    const decisions = await allowsEach?.(ann, accesses);
    clearInterval(other);
    assert.deepEqual([asked, decisions?.length, decisions?.includes(true)], [30, 60_000, false]);
    assert.notEqual(turns, 0);
  });

  it("refuses everything while the rule has no value, and says so once", async (context) => {
    const { allows, logged } = await authorizerOf(context, (response) => void response.end("{}"));
    assert.equal(await allows(ann, accessTo("a")), false);
    assert.equal(await allows(ann, accessTo("b")), false);
    assert.deepEqual(
      logged.map(({ msg }) => msg),
      ["the rule of --opa-url has no value, so that everything is refused"],
    );
  });

  it("fails the call, and allows nothing, by any answer but a list of positions", async (context) => {
    const bodies = [
      ...[
        '{"result":true}',
        '{"result":{"allow":true}}',
        '{"result":[1]}',
        '{"result":[-1]}',
        '{"result":[0.5]}',
      ],
      ...['{"result":["0"]}', '{"result":[true]}', '{"result":null}', "[0]", "null", "no JSON", ""],
    ];
    for (const body of bodies) {
      const { allows } = await authorizerOf(context, (response) => void response.end(body));
      await assert.rejects(async () => allows(ann, accessTo("a")), isUnavailable, body);
    }
  });

  it("fails the call by every status but 200, and follows no redirect", async (context) => {
    for (const status of [204, 302, 307, 400, 401, 404, 500, 503]) {
      const { allows, asked } = await authorizerOf(context, (response) => {
        response.writeHead(status, { location: "/v1/data/open" }).end(status === 204 ? "" : '{"result":[0]}');
      });
      await assert.rejects(async () => allows(ann, accessTo("a")), isUnavailable, String(status));
      assert.deepEqual(
        asked.map(({ path }) => path),
        ["/v1/data/lance/gateway/allowed"],
      );
    }
  });

  it("fails the call when the server is silent, endless or away, and leaves it alone after five failures", async (context) => {
    const silent = await authorizerOf(context, () => {}, { timeoutMs: 100 });
    for (let i = 0; i < 8; i++)
      await assert.rejects(async () => silent.allows(ann, accessTo("a")), isUnavailable);
    assert.equal(silent.asked.length, 5);
    assert.deepEqual(
      silent.logged.map(({ level, msg }) => [level, msg]),
      [[50, "the policy server cannot be asked"]],
    );
    const endless = await authorizerOf(context, (response) => {
      const more = () => response.write(" ".repeat(100_000)) || true;
      for (let i = 0; i < 20; i++) more();
    });
    await assert.rejects(async () => endless.allows(ann, accessTo("a")), isUnavailable);
    const away = await authorizerOf(context, () => {}, { url: "http://127.0.0.1:1/v1/data/a" });
    await assert.rejects(async () => away.allows(ann, accessTo("a")), isUnavailable);
  });

  it("counts for its time, for the same caller, operation and object only", async (context) => {
    const { allows, allowsEach, asked } = await authorizerOf(
      context,
      allowing(({ resource }) => resource.name === "a"),
      { maxAgeMs: 3_600_000 },
    );
    assert.equal(await allows(ann, accessTo("a")), true);
    assert.equal(await allows({ ...ann, credentialId: "other" }, accessTo("a")), true);
    assert.deepEqual(await allowsEach?.(ann, [accessTo("b"), accessTo("a"), accessTo("c")]), [
      false,
      true,
      false,
    ]);
    assert.deepEqual(
      asked.map(({ input }) => input.accesses.map(({ resource }) => resource.id)),
      [["a"], ["b", "c"]],
    );
    const others = [
      [{ ...ann, groups: [] }, accessTo("a")],
      [{ ...ann, by: "api-key" }, accessTo("a")],
      [{ ...ann, claims: {} }, accessTo("a")],
      [ann, { ...accessTo("a"), operation: "CountTableRows" }],
      [ann, { ...accessTo("a"), object: { ...accessTo("a").object, database: "sales" } }],
      [ann, { ...accessTo("a"), object: { ...accessTo("a").object, kind: "Namespace" } }],
    ] as const;
    for (const [principal, access] of others) await allows(principal, access);
    assert.equal(asked.length, 2 + others.length);
  });

  it("is asked for again when its time is over, and each time without a time", async (context) => {
    const state = { allowed: true };
    const short = await authorizerOf(
      context,
      allowing(() => state.allowed),
      { maxAgeMs: 1 },
    );
    assert.equal(await short.allows(ann, accessTo("a")), true);
    state.allowed = false;
    while (await short.allows(ann, accessTo("a")));
    const none = await authorizerOf(
      context,
      allowing(() => state.allowed),
    );
    await none.allows(ann, accessTo("a"));
    await none.allows(ann, accessTo("a"));
    assert.equal(none.asked.length, 2);
  });

  it("comes for a long listing in questions of 2,000", async (context) => {
    const { allowsEach, asked } = await authorizerOf(
      context,
      allowing(({ resource }) => resource.id.endsWith("7")),
    );
    const decisions = await allowsEach?.(
      ann,
      Array.from({ length: 4_500 }, (_, i) => accessTo(String(i))),
    );
    assert.deepEqual(
      asked.map(({ input }) => input.accesses.length),
      [2_000, 2_000, 500],
    );
    assert.ok(decisions?.every((allowed, i) => allowed === (i % 10 === 7)));
  });

  it("comes in more questions for long names deep down, so that none of them is too long for the server's time", async () => {
    const lengths: number[] = [];
    const server = {
      async ask(input: object) {
        lengths.push(JSON.stringify(input).length);
        return (input as Asked).accesses.map((_, place) => place);
      },
      close() {},
    };
    const { allowsEach } = createOpaAuthorizer({ server, maxAgeMs: 0, log: pino({ level: "silent" }) });
    const deep = Array.from({ length: 31 }, () => "namespace");
    const decisions = await allowsEach?.(
      ann,
      Array.from({ length: 2_000 }, (_, i) => accessTo(...deep, `t${i}`)),
    );
    assert.ok(Math.max(...lengths) < 1024 ** 2, `${lengths}`);
    assert.deepEqual(decisions, new Array(2_000).fill(true));
  });
});

it("decisions of a caller with long claims take no more memory than those of others", () => {
  const cache = createDecisionCache(60_000);
  const caller = { ...ann, claims: { roles: "r".repeat(32 * 1024) } };
  const before = process.memoryUsage().heapUsed;
  for (let table = 0; table < 4_000; table++) cache.remember(caller, accessTo(`t${table}`), true);
  // With the claims in each, they would take 128 MiB.
  assert.ok(process.memoryUsage().heapUsed - before < 32 * 1024 ** 2);
  assert.equal(cache.find({ ...caller }, accessTo("t1")), true);
  assert.equal(cache.find({ ...caller, claims: {} }, accessTo("t1")), undefined);
});
