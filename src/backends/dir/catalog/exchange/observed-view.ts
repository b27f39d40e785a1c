import { isDeepStrictEqual } from "node:util";
import type { CatalogView } from "../state/view.ts";

/** Queries with a single result. */
const QUERIES = {
  get: (view: CatalogView, id: string) => view.get(id),
  hasChildren: (view: CatalogView, id: string) => view.hasChildren(id),
  ownerOf: (view: CatalogView, location: string) => view.ownerOf(location),
  verdictOf: (view: CatalogView, changeId: string) => view.verdictOf(changeId),
} as const;

/** Queries that yield a sequence. */
const SEQUENCES = {
  descendants: (view: CatalogView, id: string) => view.descendants(id),
  locationsInside: (view: CatalogView, directory: string) => view.locationsInside(directory),
} as const;

/** A query of a state and what it returned, as plain data. */
export type Observation =
  | {
      readonly query: keyof typeof QUERIES;
      readonly argument: string;
      readonly result: unknown;
    }
  | {
      readonly sequence: keyof typeof SEQUENCES;
      readonly argument: string;
      /** The part of the sequence that was read. */
      readonly read: readonly string[];
      /** Whether that is all of it. */
      readonly ended: boolean;
    };

/** A view that records what is read of it. */
export interface ObservedView {
  readonly view: CatalogView;
  readonly observations: readonly Observation[];
  /** Number of answers and of items of sequences that were read. */
  readonly size: number;
}

/** Creates a view of a state that records what is read. */
export function observe(state: CatalogView): ObservedView {
  const observations: Observation[] = [];
  const known = new Map<string, unknown>();
  let items = 0;

  function ask<K extends keyof typeof QUERIES>(query: K, argument: string): ReturnType<(typeof QUERIES)[K]> {
    const key = `${query} ${argument}`;
    if (!known.has(key)) {
      const result = QUERIES[query](state, argument);
      known.set(key, result);
      observations.push({ query, argument, result });
    }
    return known.get(key) as ReturnType<(typeof QUERIES)[K]>;
  }
  function* follow(sequence: keyof typeof SEQUENCES, argument: string): Generator<string> {
    const read: string[] = [];
    const observation = { sequence, argument, read, ended: false };
    observations.push(observation);
    for (const item of SEQUENCES[sequence](state, argument)) {
      read.push(item);
      items++;
      yield item;
    }
    observation.ended = true;
  }
  return {
    observations,
    get size() {
      return observations.length + items;
    },
    view: {
      get: (id) => ask("get", id),
      hasChildren: (id) => ask("hasChildren", id),
      ownerOf: (location) => ask("ownerOf", location),
      verdictOf: (changeId) => ask("verdictOf", changeId),
      descendants: (id) => follow("descendants", id),
      locationsInside: (directory) => follow("locationsInside", directory),
    },
  };
}

/** Whether the queries of some observations have equal results on another state. */
export function stillHold(observations: readonly Observation[], state: CatalogView): boolean {
  return observations.every((observation) => {
    const { argument } = observation;
    if ("query" in observation)
      return isDeepStrictEqual(QUERIES[observation.query](state, argument), observation.result);
    return beginsWith(SEQUENCES[observation.sequence](state, argument), observation.read, observation.ended);
  });
}

function beginsWith(items: Iterable<string>, expected: readonly string[], ended: boolean): boolean {
  let place = 0;
  for (const item of items) {
    if (place === expected.length) return !ended;
    if (item !== expected[place++]) return false;
  }
  return place === expected.length;
}
