import assert from "node:assert/strict";
import { describe, test } from "vitest";
import { people, personStream } from "../../../../test/support/arrow.ts";
import { openManaged } from "../../../../test/support/catalogs/managed-catalog.ts";
import { refused } from "../../../../test/support/expect.ts";
import type { TableVersion } from "../../../gen/lance/namespace/v1/version_pb.ts";
import { LanceError } from "../../../namespace/errors.ts";

const ID = ["t"];

/** Opens a catalog that notes where the manifest of a version is and does not move it, as one that has its versions in a database alone. */
async function openNoting(t: Parameters<typeof openManaged>[0]) {
  const noted = new Map<bigint, string>();
  let [lost, unfound] = [0, 0];
  const versionOf = ([version, manifestPath]: readonly [bigint, string]) =>
    ({ version, manifestPath }) as TableVersion;
  function answer() {
    if (lost === 0) return;
    lost -= 1;
    throw new LanceError("ServiceUnavailable", "no answer");
  }
  const fixture = await openManaged(t, () => ({
    async createTableVersion({ version, manifestPath }) {
      const isTaken = noted.has(version);
      if (!isTaken) noted.set(version, manifestPath);
      answer();
      if (isTaken) throw new LanceError("ConcurrentModification", "the number is taken");
      return { version: versionOf([version, manifestPath]) } as never;
    },
    async listTableVersions({ limit }) {
      const all = [...noted].reverse().map(versionOf);
      return { versions: all.slice(0, limit) } as never;
    },
    async describeTableVersion({ version = 0n }) {
      answer();
      if (unfound > 0) {
        unfound -= 1;
        throw new LanceError("ServiceUnavailable", "no answer");
      }
      const path = noted.get(version);
      if (path === undefined) throw new LanceError("TableVersionNotFound", "no such version");
      return { version: versionOf([version, path]) } as never;
    },
  }));
  return {
    ...fixture,
    /** Loses the next answers about a single version. */
    lose(count: number) {
      lost = count;
    },
    /** Loses the next answers to descriptions of a version. */
    loseDescriptions(count: number) {
      unfound = count;
    },
  };
}

describe("manifests that the upstream does not move", () => {
  test("are those of versions, also if the answers to commits are lost", async (t) => {
    const { client, another, lose } = await openNoting(t);
    await client.createTable({ id: ID }, personStream(people(5)));
    for (const losses of [0, 1]) {
      lose(losses);
      await client.insertIntoTable({ id: ID }, personStream(people(1, 5 + losses)));
      lose(losses);
      await client.updateTableSchemaMetadata({ id: ID, metadata: { losses: String(losses) } });
    }
    for (const each of [client, another()]) {
      assert.equal((await each.countTableRows({ id: ID })).count, 7n);
      assert.equal((await each.describeTableVersion({ id: ID })).version?.version, 5n);
    }
  });

  test("remain where a commit has an unknown outcome", async (t) => {
    const { client, another, lose } = await openNoting(t);
    await client.createTable({ id: ID }, personStream(people(5)));
    lose(100);
    await refused("OutcomeUnknown", client.insertIntoTable({ id: ID }, personStream(people(1, 5))));
    lose(0);
    for (const each of [client, another()]) assert.equal((await each.countTableRows({ id: ID })).count, 6n);
  });

  test("remain if a commit conflicts with itself, and the catalog does not say so at once", async (t) => {
    const { client, another, lose, loseDescriptions } = await openNoting(t);
    await client.createTable({ id: ID }, personStream(people(5)));
    for (const [at, lost] of [1, 100].entries())
      for (const change of [
        () => client.insertIntoTable({ id: ID }, personStream(people(1, 5 + at))),
        () => client.updateTableSchemaMetadata({ id: ID, metadata: { at: String(at) } }),
      ]) {
        lose(1);
        loseDescriptions(lost);
        if (lost === 1) await change();
        else await refused("OutcomeUnknown", change());
        loseDescriptions(0);
      }
    for (const each of [client, another()]) {
      assert.equal((await each.countTableRows({ id: ID })).count, 7n);
      assert.equal((await each.describeTableVersion({ id: ID })).version?.version, 5n);
    }
  });
});
