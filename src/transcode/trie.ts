import type { Template } from "../namespace/template.ts";

/** What a path leads to: a target, or the methods that it can be reached by (none: no such path). */
export type TrieMatch<T> =
  | { readonly target: T; readonly segments: readonly string[] }
  | { readonly target: undefined; readonly allowed: readonly string[] };

/** Routes by path and HTTP method. */
export interface Trie<T> {
  /**
   * Adds a route.
   *
   * @throws Error when a route of the same method and shape is there already.
   */
  add(httpMethod: string, template: Template, target: T): void;
  /**
   * Finds the route of a path, which may have any number of slashes at both ends. A literal segment goes
   * before a wildcard. The segments of the answer are as they were sent, percent escapes included; an empty
   * segment matches nothing.
   */
  match(httpMethod: string, path: string): TrieMatch<T>;
}

/** Targets by HTTP method, by verb. */
type Targets<T> = Map<string, Map<string, T>>;

interface Node<T> {
  readonly literals: Map<string, Node<T>>;
  wildcard: Node<T> | undefined;
  readonly targets: Targets<T>;
  /** The targets of templates that end with `**` here. */
  readonly rest: Targets<T>;
}

/** Creates an empty trie. */
export function createTrie<T>(): Trie<T> {
  const root = createNode<T>();
  const verbs = new Set<string>();

  function add(httpMethod: string, template: Template, target: T): void {
    let node = root;
    let targets = node.targets;
    for (const segment of template.segments) {
      if (segment === "**") {
        targets = node.rest;
        break;
      }
      node = child(node, segment === "*" ? undefined : segment.literal);
      targets = node.targets;
    }
    const byMethod = targets.get(template.verb) ?? new Map<string, T>();
    targets.set(template.verb, byMethod);
    if (byMethod.has(httpMethod)) throw new Error(`a second route ${httpMethod} ${template.source}`);
    byMethod.set(httpMethod, target);
    if (template.verb !== "") verbs.add(template.verb);
  }

  function match(httpMethod: string, path: string): TrieMatch<T> {
    const segments = splitPath(path);
    const allowed = new Set<string>();
    const last = segments.at(-1);
    if (verbs.size > 0 && last !== undefined) {
      const colon = last.lastIndexOf(":");
      const verb = last.slice(colon + 1);
      if (colon >= 0 && verbs.has(verb)) {
        const stripped = segments.with(-1, last.slice(0, colon));
        const target = find(root, stripped, 0, verb, httpMethod, allowed);
        if (target !== undefined) return { target, segments: stripped };
      }
    }
    const target = find(root, segments, 0, "", httpMethod, allowed);
    if (target !== undefined) return { target, segments };
    return { target: undefined, allowed: [...allowed].sort() };
  }

  return { add, match };
}

function createNode<T>(): Node<T> {
  return { literals: new Map(), wildcard: undefined, targets: new Map(), rest: new Map() };
}

function child<T>(node: Node<T>, literal: string | undefined): Node<T> {
  const found = literal === undefined ? node.wildcard : node.literals.get(literal);
  if (found !== undefined) return found;
  const made = createNode<T>();
  if (literal === undefined) node.wildcard = made;
  else node.literals.set(literal, made);
  return made;
}

/** Looks below a node; the methods of paths that match except for the method are added to `allowed`. */
function find<T>(
  node: Node<T>,
  segments: readonly string[],
  index: number,
  verb: string,
  httpMethod: string,
  allowed: Set<string>,
): T | undefined {
  const segment = segments[index];
  if (segment === undefined) {
    const target = pick(node.targets, verb, httpMethod, allowed);
    if (target !== undefined) return target;
  } else if (segment !== "") {
    const literal = node.literals.get(segment);
    if (literal !== undefined) {
      const target = find(literal, segments, index + 1, verb, httpMethod, allowed);
      if (target !== undefined) return target;
    }
    if (node.wildcard !== undefined) {
      const target = find(node.wildcard, segments, index + 1, verb, httpMethod, allowed);
      if (target !== undefined) return target;
    }
  }
  return node.rest.size === 0 ? undefined : pick(node.rest, verb, httpMethod, allowed);
}

function pick<T>(targets: Targets<T>, verb: string, httpMethod: string, allowed: Set<string>): T | undefined {
  const byMethod = targets.get(verb);
  if (byMethod === undefined) return undefined;
  const target = byMethod.get(httpMethod);
  if (target === undefined) for (const method of byMethod.keys()) allowed.add(method);
  return target;
}

function splitPath(path: string): string[] {
  let start = 0;
  let end = path.length;
  while (start < end && path[start] === "/") start++;
  while (end > start && path[end - 1] === "/") end--;
  return start === end ? [] : path.slice(start, end).split("/");
}
