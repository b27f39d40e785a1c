import assert from "node:assert/strict";
import { beforeAll, describe, it } from "vitest";
import type { Access, Properties } from "../../namespace/authorizer.ts";
import type { Principal } from "../../namespace/call/principal.ts";
import type { ObjectKind } from "../../namespace/operations/touch.ts";
import { atOnce } from "../../runtime/pace.ts";
import { createDecider, type Decider } from "./decide.ts";
import { parsePolicies } from "./read-policies.ts";
import { BY_NAME, type Cedar, entitiesOf, lineOf, loadCedar, userOf } from "./schema.ts";

let cedar: Cedar;
beforeAll(async () => {
  cedar = await loadCedar();
});

const ann: Principal = {
  ...{ by: "oidc", name: "ann", credentialId: "1", role: "none" },
  ...{ groups: ["eng"], claims: { department: "search", levels: [1, 2], nested: { a: 1 } } },
};

function access(operation: string, path: string, kind: ObjectKind = "Table", database?: string): Access {
  const id = path === "" ? [] : path.split("/");
  const action = BY_NAME.get(operation)?.action as Access["action"];
  return { operation, action, object: { kind, database, id } };
}

function decider(text: string): Decider {
  const { policies, mistakes } = atOnce(parsePolicies(cedar, text, "test.cedar"));
  assert.deepEqual(mistakes, []);
  return createDecider(cedar, policies);
}

describe("decisions", () => {
  it("are no where no policy allows the access, and where one forbids it", () => {
    const { allows } = decider(`
      permit (principal in Group::"eng", action in Action::"read", resource in Namespace::"a");
      forbid (principal, action, resource == Table::"a$b$secret");`);
    assert.equal(allows(ann, access("QueryTable", "a/b/t")), true);
    assert.equal(allows(ann, access("QueryTable", "a/b/secret")), false);
    assert.equal(allows(ann, access("QueryTable", "ab/t")), false);
    assert.equal(allows(ann, access("InsertIntoTable", "a/b/t")), false);
    assert.equal(allows({ ...ann, groups: [] }, access("QueryTable", "a/b/t")), false);
  });

  it("tell callers apart by how they have proved their name", () => {
    const { allows } = decider('permit (principal == User::"oidc:ann", action, resource);');
    assert.equal(allows(ann, access("QueryTable", "t")), true);
    assert.equal(allows({ ...ann, by: "api-key" }, access("QueryTable", "t")), false);
    assert.equal(allows({ ...ann, by: "api-key", name: "oidc:ann" }, access("QueryTable", "t")), false);
  });

  it("see claims as sets of texts", () => {
    const ask = (tag: string, value: string) =>
      decider(`permit (principal, action, resource)
        when { principal.hasTag("${tag}") && principal.getTag("${tag}").contains("${value}") };`).allows(
        ann,
        access("QueryTable", "t"),
      );
    assert.deepEqual(
      [ask("department", "search"), ask("levels", "2"), ask("department", "x"), ask("nested", "a")],
      [true, true, false, false],
    );
  });

  it("tell objects apart whose names, joined, are the same text", () => {
    for (const condition of ["", 'when { resource.name like "*" }']) {
      const { allows } = decider(`
        permit (principal, action, resource in Namespace::"a") ${condition};
        permit (principal, action, resource == Table::"x$y");`);
      const asked = [
        ["a", "b$c"],
        ["a$b", "c"],
        ["a", "b", "c"],
      ].map((id) => ({
        ...access("QueryTable", ""),
        object: { kind: "Table" as const, database: undefined, id },
      }));
      // The second answer comes from memory.
      for (const _ of [1, 2])
        assert.deepEqual(
          asked.map((each) => allows(ann, each)),
          [true, false, true],
        );
    }
  });

  it("are not remembered for another object whose names have line breaks", () => {
    const at = (...id: string[]) => ({
      ...access("QueryTable", ""),
      object: { kind: "Table" as const, database: undefined, id },
    });
    for (const [object, condition] of [
      ['resource == Table::"a$secret"', ""],
      ["resource", 'when { resource.path == "a$secret" }'],
    ]) {
      const { allows } = decider(`
        permit (principal, action, resource);
        forbid (principal, action, ${object}) ${condition};`);
      const names = [["a\nsecret"], ["a", "secret"]];
      assert.deepEqual(
        names.map((id) => allows(ann, at(...id))),
        [true, false],
      );
    }
  });

  it("are remembered for all tokens of a caller, unless they differ in claims that policies ask about", () => {
    const ask = (condition: string) => {
      let made = 0;
      const counted: Cedar = {
        ...cedar,
        statefulIsAuthorized(call) {
          made += 1;
          return cedar.statefulIsAuthorized(call);
        },
      };
      const text = `permit (principal, action, resource) when { ${condition} };`;
      const { allows } = createDecider(counted, atOnce(parsePolicies(cedar, text, "test.cedar")).policies);
      const answers = ["search", "sales"].map((department) =>
        [1, 2, 3].map((jti) => allows({ ...ann, claims: { department, jti } }, access("QueryTable", "t"))),
      );
      return [made, ...answers.flat()];
    };
    const answers = [true, true, true, false, false, false];
    const department = '.contains("search")';
    assert.deepEqual(ask(`principal.hasTag("department") && principal.getTag("department")${department}`), [
      2,
      ...answers,
    ]);
    // The name of a claim that is computed may be that of any.
    const computed = '(if principal.name == "ann" then "department" else "x")';
    assert.deepEqual(ask(`principal.hasTag(${computed}) && principal.getTag(${computed})${department}`), [
      6,
      ...answers,
    ]);
    assert.equal(ask("true")[0], 1);
  });

  it("by changed policies take the place of those before in the library, which would keep both", () => {
    const kept = new Set<string>();
    const watched: Cedar = {
      ...cedar,
      preparsePolicySet(name, policies) {
        kept.add(name);
        return cedar.preparsePolicySet(name, policies);
      },
    };
    const deciders = ["permit", "forbid", "permit"].map((effect) => {
      const text = `${effect} (principal, action, resource) when { resource.name like "t*" };`;
      return createDecider(watched, atOnce(parsePolicies(cedar, text, "test.cedar")).policies);
    });
    // A call that has begun by the former policies may ask beside others.
    const answers = ["t1", "t2"].map((name) =>
      deciders.map(({ allows }) => allows(ann, access("QueryTable", name))),
    );
    assert.deepEqual(answers, [
      [true, false, true],
      [true, false, true],
    ]);
    assert.equal(kept.size, 1);
  });

  it("are no for texts with half a surrogate pair, however many, which would break the library", () => {
    const half = "\ud83d";
    const failures: string[] = [];
    const text = `permit (principal, action, resource)
      when { resource.name like "t*" && principal.hasTag("nick") && principal.getTag("nick").contains("a") };`;
    const { policies } = atOnce(parsePolicies(cedar, text, "test.cedar"));
    const { allows } = createDecider(cedar, policies, (errors) => failures.push(...errors));
    const refused = [
      { ...ann, claims: { nick: half } },
      { ...ann, groups: [half], claims: { nick: "a" } },
      { ...ann, name: half, claims: { nick: "a" } },
    ];
    for (let i = 0; i < 3_000; i++)
      for (const caller of refused) assert.equal(allows(caller, access("QueryTable", `t${i}`)), false);
    assert.match(failures[0] ?? "", /half a surrogate pair/);
    // A claim that no policy asks about does no harm.
    const other = { ...ann, claims: { nick: "a", picture: half } };
    assert.equal(allows(other, access("QueryTable", "t")), true);
    assert.equal(allows(other, access("QueryTable", half)), false);
  });

  it("are made for each object that a policy asks about", () => {
    const { allows } = decider(
      'permit (principal, action, resource is Table) when { resource.name like "pub*" };',
    );
    assert.equal(allows(ann, access("QueryTable", "a/public")), true);
    assert.equal(allows(ann, access("QueryTable", "a/private")), false);
    assert.equal(allows(ann, access("QueryTable", "a/pub2")), true);
  });

  it("ask for the properties of an object where a policy that covers it does, and nowhere else", async () => {
    const { allows } = decider(`
      permit (principal, action in Action::"read", resource in Namespace::"a")
        when { resource.hasTag("class") && resource.getTag("class") == "public" };
      permit (principal, action, resource in Namespace::"b");`);
    const asked: string[] = [];
    const withClass = (path: string, value?: string): Access => ({
      ...access("QueryTable", path),
      async properties(): Promise<Properties> {
        asked.push(path);
        return value === undefined ? {} : { class: value, owner: "ann" };
      },
    });
    assert.equal(await allows(ann, withClass("a/t", "public")), true);
    assert.equal(await allows(ann, withClass("a/t", "secret")), false);
    assert.equal(await allows(ann, withClass("a/t")), false);
    assert.equal(await allows(ann, withClass("a/t", "public")), true);
    assert.equal(await allows(ann, withClass("a/u", "secret")), false);
    assert.equal(allows(ann, withClass("b/t", "secret")), true);
    assert.equal(allows(ann, withClass("c/t", "public")), false);
    assert.deepEqual(asked, ["a/t", "a/t", "a/t", "a/t", "a/u"]);
  });

  it("fail with the error of looking properties up", async () => {
    const { allows } = decider('permit (principal, action, resource) when { resource.hasTag("class") };');
    const properties = () => Promise.reject(new Error("away"));
    await assert.rejects(async () => allows(ann, { ...access("QueryTable", "t"), properties }), /away/);
  });

  it("keep databases apart, also where their names look like namespaces", () => {
    const { allows } = decider('permit (principal, action, resource in Database::"a");');
    assert.equal(allows(ann, access("QueryTable", "t", "Table", "a")), true);
    assert.equal(allows(ann, access("QueryTable", "a/t", "Table", "b")), false);
    assert.equal(allows(ann, access("QueryTable", "a/t")), false);
  });

  it("say which policies decided", () => {
    const { explain } = decider(`
      @id("all") permit (principal, action, resource);
      @id("stop") forbid (principal, action == Action::"DropTable", resource);`);
    assert.deepEqual(explain(ann, access("QueryTable", "t")), { allowed: true, by: ["all"], errors: [] });
    assert.deepEqual(explain(ann, access("DropTable", "t")), { allowed: false, by: ["stop"], errors: [] });
  });

  it("about all objects of a namespace are those about each of them", () => {
    const { allows, allowsSiblings } = decider(`
      permit (principal, action, resource in Namespace::"a");
      forbid (principal, action, resource == Table::"a$secret");
      forbid (principal, action, resource in Table::"a$hidden");
      permit (principal, action, resource == Table::"b$shown");`);
    for (const [namespace, expected, names] of [
      ["a", true, ["hidden", "secret"]],
      ["b", false, ["shown"]],
      ["c", false, []],
    ] as const) {
      const siblings = allowsSiblings(ann, access("QueryTable", `${namespace}/`));
      assert.deepEqual([siblings?.allowed, siblings?.exceptions], [expected, names]);
      for (const name of ["hidden", "secret", "shown", "other"]) {
        const isException = (names as readonly string[]).includes(name);
        const allowed = allows(ann, access("QueryTable", `${namespace}/${name}`));
        assert.equal(allowed, isException ? !expected : expected, `${namespace}$${name}`);
      }
    }
    const asking = decider('permit (principal, action, resource is Table) when { resource.name like "p*" };');
    assert.equal(asking.allowsSiblings(ann, access("QueryTable", "a/")), undefined);
  });

  it("are no where a policy fails, since it could be one that forbids", () => {
    const failures: string[] = [];
    const text = `permit (principal, action, resource);
      @id("huge") forbid (principal, action, resource) when { 9223372036854775807 + 1 == 0 };`;
    const { policies } = atOnce(parsePolicies(cedar, text, "x.cedar"));
    const { allows } = createDecider(cedar, policies, (errors) => failures.push(...errors));
    assert.equal(allows(ann, access("QueryTable", "t")), false);
    assert.match(failures.join(), /huge.*overflow/);
  });

  it("equal those of all policies together, whatever scopes and conditions they have", () => {
    const text = SCOPES.principals
      .flatMap((principal, p) =>
        SCOPES.actions.flatMap((action, a) =>
          SCOPES.resources.map((resource, r) => {
            const effect = p > 0 && a > 0 && r > 0 && (p + a + r) % 4 === 0 ? "forbid" : "permit";
            const condition = SCOPES.conditions[(p + a + r) % SCOPES.conditions.length];
            return `${effect} (${principal}, ${action}, ${resource}) ${condition};`;
          }),
        ),
      )
      .filter((_, i) => i % 3 === 0)
      .join("\n");
    const { policies } = atOnce(parsePolicies(cedar, text, "all.cedar"));
    const { allows } = createDecider(cedar, policies);
    const staticPolicies = Object.fromEntries(policies.map(({ name, text: own }) => [name, own]));
    cedar.preparsePolicySet("all of the test", { staticPolicies });
    let yes = 0;
    for (const principal of CALLERS) {
      // A decision that is remembered, and one after another order of objects, is the same.
      for (const one of [...ACCESSES, ...ACCESSES.toReversed()]) {
        const answer = cedar.statefulIsAuthorized({
          principal: userOf(principal),
          action: { type: "Action", id: one.operation },
          resource: lineOf(one.object)[0] as never,
          context: {},
          preparsedPolicySetId: "all of the test",
          entities: entitiesOf(principal, one, {}),
        });
        assert.ok(answer.type === "success");
        const expected = answer.response.decision === "allow";
        if (expected) yes += 1;
        // The second answer comes from memory.
        for (const _ of [1, 2])
          assert.equal(allows(principal, one), expected, JSON.stringify([principal, one]));
      }
    }
    assert.ok(yes > 40, `${yes} of ${2 * CALLERS.length * ACCESSES.length} are allowed`);
  });
});

const SCOPES = {
  principals: [
    "principal",
    'principal == User::"oidc:ann"',
    'principal in Group::"eng"',
    "principal is User",
    'principal is User in Role::"reader"',
  ],
  actions: ["action", 'action == Action::"QueryTable"', 'action in [Action::"read", Action::"DropTable"]'],
  resources: [
    "resource",
    'resource == Table::"a$t"',
    'resource in Namespace::"a"',
    'resource in Database::"default"',
    "resource is Table",
    'resource is Table in Namespace::"a$b"',
  ],
  conditions: ["", 'when { resource.name like "t*" }', 'unless { principal.by == "mtls" }'],
};

const CALLERS: readonly Principal[] = [
  ann,
  { ...ann, name: "bob" },
  { ...ann, by: "mtls", groups: [] },
  { ...ann, name: "cat", groups: [], role: "reader" },
];

const ACCESSES: readonly Access[] = ["QueryTable", "DropTable", "InsertIntoTable"].flatMap((operation) =>
  ["a/t", "a/u", "a/v", "a/b/t", "a/b/u", "c/t", "t", "c/u"].map((path) => access(operation, path)),
);
