import assert from "node:assert/strict";
import { describe, it } from "vitest";
import { beginCall } from "../../../../test/support/caller.ts";
import { type ErrorName, isLanceError, LanceError } from "../../../namespace/errors.ts";
import type { LanceNamespace } from "../../../namespace/lance-namespace.ts";
import { METHODS } from "../../../namespace/operations/operations.ts";
import { RefusedCommit } from "../../dir/format/versions/catalog-store.ts";
import { createUpstreamVersions } from "./upstream-versions.ts";

const STAGED = { version: 3n, key: "a/t.lance/_versions/3.manifest-x", size: 5, scheme: "V2" } as const;

/** Creates the versions of a table at `a/t.lance`, of an upstream with some operations. */
function versionsOf(operations: object, id = ["n", "t"]) {
  const versions = createUpstreamVersions(
    { operations: operations as Partial<LanceNamespace> },
    id,
    "a/t.lance",
  );
  versions.addSource(beginCall(METHODS.countTableRows, { headers: { authorization: "Bearer ada" } }));
  return versions;
}
const version = (number: number, path = `/a/t.lance/_versions/${number}.manifest`) => ({
  version: BigInt(number),
  manifestPath: path,
});
const isOf = (name: ErrorName) => (error: unknown) => isLanceError(error, name);

/** Collects the versions of a listing. */
async function listed(versions: ReturnType<typeof versionsOf>, branch?: string) {
  const found: bigint[] = [];
  for await (const page of versions.list(branch)) found.push(...page.map((each) => each.version));
  return found;
}

describe("versions of an upstream", () => {
  it("are listed page by page, the newest first and alone, as the caller of a call", async () => {
    const asked: unknown[] = [];
    const versions = versionsOf({
      async listTableVersions(
        { id, limit, pageToken, descending }: Record<string, unknown>,
        { headers }: { headers: Record<string, string> },
      ) {
        asked.push([id, limit, pageToken, descending, headers["authorization"]]);
        return pageToken === undefined
          ? { versions: [version(3)], pageToken: "p" }
          : { versions: [version(2), version(1)] };
      },
    });
    assert.deepEqual(await listed(versions), [3n, 2n, 1n]);
    assert.deepEqual(asked, [
      [["n", "t"], 1, undefined, true, "Bearer ada"],
      [["n", "t"], 1_000, "p", true, "Bearer ada"],
    ]);
  });

  it("end where the upstream repeats itself", async () => {
    const versions = versionsOf({
      listTableVersions: async () => ({ versions: [version(3)], pageToken: "p" }),
    });
    await assert.rejects(listed(versions), isOf("InvalidTableState"));
  });

  it("go on behind a page that has none", async () => {
    const pages: Record<string, object> = {
      "": { versions: [], pageToken: "a" },
      a: { versions: [version(3)], pageToken: "b" },
      b: { versions: [], pageToken: "c" },
      c: { versions: [version(1)] },
    };
    const versions = versionsOf({
      listTableVersions: async ({ pageToken = "" }: { pageToken?: string }) => pages[pageToken],
    });
    assert.deepEqual(await listed(versions), [3n, 1n]);
    const endless = versionsOf({ listTableVersions: async () => ({ versions: [], pageToken: "p" }) });
    await assert.rejects(listed(endless), isOf("InvalidTableState"));
  });

  it("are all listed where the upstream limits a listing and has no pages, as pylance's adapter", async () => {
    const all = [5, 4, 3, 2, 1];
    const limits: unknown[] = [];
    const versions = versionsOf({
      async listTableVersions({ limit }: { limit?: number }) {
        limits.push(limit);
        if (limits.length === 2) all.unshift(6);
        return { versions: all.slice(0, limit).map((number) => version(number)) };
      },
    });
    assert.deepEqual(await listed(versions), [5n, 4n, 3n, 2n, 1n]);
    assert.deepEqual(limits, [1, undefined]);
  });

  it("are those that were asked for", async () => {
    const versions = versionsOf({
      describeTableVersion: async () => ({ version: version(2) }),
      createTableVersion: async () => ({ version: version(2) }),
    });
    await assert.rejects(versions.find(undefined, 3n), isOf("InvalidTableState"));
    await assert.rejects(versions.commit(undefined, STAGED), isOf("OutcomeUnknown"));
  });

  it("are none of a table or branch that the upstream does not have", async () => {
    for (const name of ["TableNotFound", "TableBranchNotFound"] as const) {
      const refuse = async () => {
        throw new LanceError(name, "no");
      };
      const versions = versionsOf({ listTableVersions: refuse, describeTableVersion: refuse });
      assert.deepEqual(await listed(versions, "dev"), []);
      assert.equal(await versions.find("dev", 1n), undefined);
    }
  });

  it("have manifests in the table's own directory of versions", async () => {
    const paths = [
      "a/u.lance/_versions/3.manifest",
      "a/t.lance/_versions/../../u.lance/_versions/3.manifest",
      "a/t.lance/_versions/sub/3.manifest",
      "a/t.lance/tree/dev/_versions/3.manifest",
      "s3://other/a/t.lance/_versions/3.manifest",
      "a/t.lance/_versions/..manifest",
      "",
    ];
    for (const path of paths) {
      const answer = { version: version(3, path), versions: [version(3, path)] };
      const versions = versionsOf({
        listTableVersions: async () => answer,
        describeTableVersion: async () => answer,
        createTableVersion: async () => answer,
      });
      await assert.rejects(listed(versions), isOf("PermissionDenied"), path);
      await assert.rejects(versions.find(undefined, 3n), isOf("PermissionDenied"), path);
      // The version is committed.
      const commit = versions.commit(undefined, STAGED);
      await assert.rejects(commit, (error) => !(error instanceof RefusedCommit), path);
    }
    const versions = versionsOf({
      describeTableVersion: async () => ({ version: version(3, "a/t.lance/tree/dev/_versions/3.manifest") }),
    });
    assert.equal((await versions.find("dev", 3n))?.key, "a/t.lance/tree/dev/_versions/3.manifest");
  });

  it("are refused once, with the upstream's reason", async () => {
    let asked = 0;
    const versions = versionsOf({
      async createTableVersion() {
        asked += 1;
        throw new LanceError("PermissionDenied", "readers do not commit");
      },
    });
    await assert.rejects(versions.commit(undefined, STAGED), (error) => error instanceof RefusedCommit);
    assert.equal(asked, 1);
    const said = "Commit result for version 3 is unknown: the manifest could not be read back";
    const unknown = new LanceError("OutcomeUnknown", "look", { cause: new Error(said) });
    assert.match(versions.refusalIn(unknown)?.message ?? "", /version 3 of "n\$t": readers do not commit/);
    assert.equal(versions.refusalIn(new LanceError("OutcomeUnknown", "look")), undefined);
  });

  it("are not told to be refused where another commit of the number may have taken place", async () => {
    const gate = Promise.withResolvers<void>();
    const versions = versionsOf({
      async createTableVersion({ branch }: { branch?: string }) {
        if (branch === "dev") throw new LanceError("Throttling", "too many requests");
        await gate.promise;
        throw new LanceError("ServiceUnavailable", "no answer");
      },
    });
    const said = "Commit result for version 3 is unknown: the manifest could not be read back";
    const unknown = new LanceError("OutcomeUnknown", "look", { cause: new Error(said) });
    const lost = versions.commit(undefined, STAGED);
    await assert.rejects(versions.commit("dev", STAGED), isOf("Throttling"));
    assert.ok(isLanceError(versions.refusalIn(unknown), "Throttling"));
    gate.resolve();
    await assert.rejects(lost, isOf("OutcomeUnknown"));
    assert.equal(versions.refusalIn(unknown), undefined);
    await assert.rejects(versions.commit("dev", STAGED), isOf("Throttling"));
    assert.equal(versions.refusalIn(unknown), undefined);
  });

  it("are asked for again with the same manifest while answers are lost", async () => {
    const asked: unknown[] = [];
    const versions = versionsOf({
      async createTableVersion({ manifestPath }: { manifestPath: string }) {
        asked.push(manifestPath);
        if (asked.length < 3) throw new LanceError("DeadlineExceeded", "no answer");
        return { version: version(3) };
      },
    });
    assert.equal((await versions.commit(undefined, STAGED)).key, "a/t.lance/_versions/3.manifest");
    assert.deepEqual(asked, [STAGED.key, STAGED.key, STAGED.key]);
  });

  it("are not committed if no request reaches the upstream, and may be if one has", async () => {
    const unreached = new LanceError("ServiceUnavailable", "no connection", { fault: "unreached" });
    const lost = new LanceError("OutcomeUnknown", "the connection broke", { fault: "reset" });
    for (const [failures, isRefused] of [
      [[unreached, unreached, unreached], true],
      [[unreached, lost, unreached], false],
    ] as const) {
      const left: LanceError[] = [...failures];
      const versions = versionsOf({
        async createTableVersion() {
          throw left.shift();
        },
      });
      await assert.rejects(versions.commit(undefined, STAGED), (error) => {
        assert.ok(isLanceError(error, isRefused ? "ServiceUnavailable" : "OutcomeUnknown"));
        return isRefused === error instanceof RefusedCommit;
      });
      assert.equal(left.length, 0);
    }
  });

  it("have an unknown outcome if an answer was lost and the next one refuses", async () => {
    let asked = 0;
    const versions = versionsOf({
      async createTableVersion() {
        asked += 1;
        throw asked === 1
          ? new LanceError("ServiceUnavailable", "no answer")
          : new LanceError("Unauthenticated", "the token has expired");
      },
    });
    await assert.rejects(versions.commit(undefined, STAGED), isOf("OutcomeUnknown"));
    assert.equal(asked, 2);
  });

  it("name the operation that the upstream lacks", async () => {
    const versions = versionsOf({});
    await assert.rejects(listed(versions), /no operation listTableVersions/);
    await assert.rejects(versions.commit(undefined, STAGED), /no operation createTableVersion/);
  });
});
