import type { Namespace } from "../../client/namespace.ts";
import type { NamePage } from "./tree-model.ts";

/** Names of a list, and the most lists that a search reads. */
const LISTED_NAMES = 1_000;
const MOST_LISTS = 200;

/** Names of an object from the root downwards. */
export type Id = readonly string[];

/** Tables of a namespace. */
export interface Tables {
  readonly tables: readonly Id[];
  /** Whether there are others, which were not listed. */
  readonly hasMore: boolean;
}

/** Lists the first tables of a namespace. */
export async function firstTables(namespace: Namespace, id: Id, signal: AbortSignal): Promise<Tables> {
  const { tables, pageToken } = await namespace.listTables({ id, limit: LISTED_NAMES }, { signal });
  return { tables: tables.map((name) => [...id, name]), hasMore: !!pageToken };
}

/** Lists all tables of a namespace; at the root, those of all namespaces, too. */
export async function allTables(namespace: Namespace, id: Id, signal: AbortSignal): Promise<Tables> {
  const tables: Id[] = [];
  const waiting: Id[] = [id];
  let lists = 0;
  /** Yields the names of all pages, as long as the search may read lists. */
  async function* names(list: (pageToken: string | undefined) => Promise<NamePage>): AsyncIterable<string> {
    let token: string | undefined;
    do {
      if (lists >= MOST_LISTS) return;
      lists += 1;
      const page = await list(token);
      yield* page.names;
      token = page.next;
    } while (token !== undefined);
  }
  for (let folder = waiting.shift(); folder !== undefined; folder = waiting.shift()) {
    const inside = folder;
    const request = (pageToken: string | undefined) => ({ id: inside, pageToken, limit: LISTED_NAMES });
    const ofTables = async (token: string | undefined) => {
      const page = await namespace.listTables(request(token), { signal });
      return { names: page.tables, next: page.pageToken || undefined };
    };
    for await (const name of names(ofTables)) tables.push([...inside, name]);
    if (id.length > 0) continue;
    const ofNamespaces = async (token: string | undefined) => {
      const page = await namespace.listNamespaces(request(token), { signal });
      return { names: page.namespaces, next: page.pageToken || undefined };
    };
    for await (const name of names(ofNamespaces)) waiting.push([...inside, name]);
  }
  return { tables, hasMore: lists >= MOST_LISTS };
}
