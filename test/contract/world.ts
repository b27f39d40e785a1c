import assert from "node:assert/strict";
import { afterAll, beforeAll } from "vitest";
import { createLocalStore } from "../../src/backends/dir/format/local/local-store.ts";
import type { ObjectStore } from "../../src/backends/dir/format/storage.ts";
import type { Operation } from "../../src/namespace/lance-namespace.ts";
import { type Person, people, personStream } from "../support/arrow.ts";
import type { LanceClient } from "../support/client.ts";
import { FIRST_CUT } from "../support/operations.ts";

/** Capabilities of a backend under test; a suite omits the tests of a capability that is absent. */
export interface Capabilities {
  /** The supported operations; all others must answer Unsupported. */
  readonly operations: ReadonlySet<Operation>;
  /** Whether the backend itself refuses locations outside its storage; a proxy leaves that to its upstream. */
  readonly confinesLocations: boolean;
  /** Whether calls on rows change the properties of tables. */
  readonly changesProperties: boolean;
  /** Whether the catalog adds properties of its own to those of tables. */
  readonly addsProperties: boolean;
  /** Whether the catalog commits the versions of its tables, and says so. */
  readonly managesVersions: boolean;
}

/** The capabilities of a backend that can do everything. */
export const ALL_CAPABILITIES: Capabilities = {
  operations: FIRST_CUT,
  confinesLocations: true,
  changesProperties: true,
  addsProperties: false,
  managesVersions: false,
};

/** A client of a new, empty catalog. */
export interface Fixture {
  readonly client: LanceClient;
  /** The storage of its tables, by the paths in answers. Default: the local disk. */
  readonly store?: ObjectStore;
  close(): Promise<void>;
}

/** The catalog that the tests of a suite share. Every test works in its own namespace. */
export interface World {
  readonly client: LanceClient;
  /** The storage of its tables. */
  readonly store: ObjectStore;
  readonly capabilities: Capabilities;
  /** Creates an empty namespace and returns its name. */
  namespace(): Promise<string>;
  /** Creates a table in a namespace of its own and returns its identifier. */
  table(rows?: readonly Person[]): Promise<string[]>;
  /** Declares a table in a namespace of its own and returns its identifier. */
  declared(): Promise<string[]>;
  /** Returns the number of rows of a table. */
  count(id: string[]): Promise<number>;
}

/** Opens the catalog before the tests of the enclosing suite and closes it after them. */
export function createWorld(open: () => Promise<Fixture>, capabilities: Capabilities): World {
  let fixture: Fixture | undefined;
  let namespaces = 0;
  beforeAll(async () => {
    fixture = await open();
  });
  afterAll(() => fixture?.close());

  const world: World = {
    capabilities,
    get client() {
      assert.ok(fixture, "the catalog is open");
      return fixture.client;
    },
    get store() {
      return fixture?.store ?? createLocalStore();
    },
    async namespace() {
      namespaces += 1;
      const name = `ns${namespaces}`;
      await world.client.createNamespace({ id: [name] });
      return name;
    },
    async table(rows = people(5)) {
      const id = [await world.namespace(), "t"];
      await world.client.createTable({ id }, personStream(rows));
      return id;
    },
    async declared() {
      const id = [await world.namespace(), "d"];
      await world.client.declareTable({ id });
      return id;
    },
    async count(id) {
      return Number((await world.client.countTableRows({ id })).count);
    },
  };
  return world;
}

/** Returns the fields of a table, each with the name of its type. */
export async function fieldsOf({ client }: World, id: string[], branch?: string) {
  const { schema } = await client.describeTable({
    id,
    loadDetailedMetadata: true,
    ...(branch && { branch }),
  });
  return (schema?.fields ?? []).map((field) => ({ ...field, type: field.type?.type }));
}

/** A page of any listing. */
export interface Page {
  readonly names: readonly string[];
  readonly pageToken: string | undefined;
}

/**
 * Follows the tokens of a listing to its end; fails on more pages than `bound`, or on an empty page before the last.
 */
export async function allPages(
  list: (pageToken: string | undefined) => Promise<Page>,
  limit: number,
  bound: number,
): Promise<string[]> {
  const names: string[] = [];
  let pageToken: string | undefined;
  for (let page = 0; page <= bound; page += 1) {
    const answer = await list(pageToken);
    assert.ok(answer.names.length <= limit, `a page of ${answer.names.length} with limit ${limit}`);
    names.push(...answer.names);
    pageToken = answer.pageToken;
    if (!pageToken) return names;
    assert.ok(answer.names.length > 0, "an empty page has a token");
  }
  assert.fail(`the listing does not end after ${bound} pages`);
}

/**
 * Checks a listing with every page size: each name appears once, and a page that holds exactly the rest has no token.
 */
export async function checkPaging(
  expected: readonly string[],
  list: (options: { limit: number; pageToken?: string }) => Promise<Page>,
): Promise<void> {
  const wanted = [...expected].sort();
  for (let limit = 1; limit <= expected.length + 1; limit += 1) {
    const next = (pageToken: string | undefined) =>
      list({ limit, ...(pageToken === undefined ? {} : { pageToken }) });
    const names = await allPages(next, limit, expected.length);
    assert.deepEqual(names.toSorted(), wanted, `with pages of ${limit}`);
  }
  const { names, pageToken } = await list({ limit: expected.length });
  assert.equal(names.length, expected.length);
  assert.ok(!pageToken, "a page that holds exactly the rest has no token");
}

/** Checks that a token which no answer contained is refused or comes to an end. */
export async function checkForeignToken(
  size: number,
  list: (options: { limit: number; pageToken: string }) => Promise<Page>,
): Promise<void> {
  for (const token of ["no such token", "~~~~", "\u{10ffff}"]) {
    const rest = await allPages((next) => list({ limit: 1, pageToken: next ?? token }), 1, size).catch(
      (error: { failure?: { code?: number } }) => {
        assert.equal(error.failure?.code, 13, String(error));
        return [];
      },
    );
    assert.equal(new Set(rest).size, rest.length, "nothing twice");
  }
}
