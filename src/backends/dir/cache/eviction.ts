/** A node of a queue. */
interface Node<T> {
  readonly item: T;
  readonly weight: number;
  /** Number of uses since it was last looked at, at most {@link MOST_USES}. */
  uses: number;
  /** When the last use was counted. */
  usedAt: number;
  queue: Queue<T>;
  before: Node<T> | undefined;
  after: Node<T> | undefined;
}

/** Items in the order in which they came. */
interface Queue<T> {
  first: Node<T> | undefined;
  last: Node<T> | undefined;
  weight: number;
  count: number;
}

/** Uses beyond these do not keep an item longer. */
const MOST_USES = 3;

/** Share of the room for items that have not proved yet that they are read again. */
const PROBATION = 0.1;

/**
 * Time within which several uses count once, in milliseconds: a scan reads a block in several pieces, which does not prove that anything
 * reads it again.
 */
const SAME_USE_MS = 1_000;

/** Options of {@link createEviction}. */
export interface EvictionOptions<T> {
  /** Room for all items. */
  readonly capacity: number;
  /** Returns the key by which an item is recognised that comes back after it was evicted. */
  readonly keyOf: (item: T) => string;
  /** Called for each item that leaves for lack of room. */
  readonly onEvict: (item: T) => void;
  /** In milliseconds. Default: a monotonic clock. */
  readonly now?: () => number;
}

/** Decides which items stay in a bounded room, by how recently and how often they are used. */
export interface Eviction<T> {
  /**
   * Adds an item, for which others leave if the room is full.
   *
   * @param isProven whether it stays as long as items that were used several times. Default: only if it has left recently.
   */
  add(item: T, weight: number, isProven?: boolean): void;
  /** Notes a use. */
  touch(item: T): void;
  /** Takes an item out. */
  remove(item: T): void;
  has(item: T): boolean;
  /** Weight of all items. */
  readonly weight: number;
}

/**
 * Creates an eviction by S3-FIFO: new items wait in a small queue, from which only those pass to the main queue that are used again; items
 * of the main queue that were used get another turn. A scan passes through the small queue alone.
 */
export function createEviction<T>(options: EvictionOptions<T>): Eviction<T> {
  const { capacity, keyOf, onEvict, now = () => performance.now() } = options;
  const nodes = new Map<T, Node<T>>();
  const probation = emptyQueue<T>();
  const main = emptyQueue<T>();
  /** Keys of items that left the small queue, the oldest first: at most as many as items are here. */
  const departed = new Set<string>();

  function evictFrom(queue: Queue<T>): void {
    const node = queue.first;
    if (node === undefined) return;
    unlink(node);
    if (queue === probation && node.uses > 0) {
      node.uses = 0;
      link(node, main);
      return;
    }
    if (queue === main && node.uses > 0) {
      node.uses -= 1;
      link(node, main);
      return;
    }
    nodes.delete(node.item);
    if (queue === probation) {
      departed.add(keyOf(node.item));
      for (const oldest of departed) {
        if (departed.size <= nodes.size + 1) break;
        departed.delete(oldest);
      }
    }
    onEvict(node.item);
  }
  return {
    add(item, weight, isProven = false) {
      if (nodes.has(item) || weight > capacity) return;
      const wasHere = departed.delete(keyOf(item));
      while (probation.weight + main.weight + weight > capacity)
        evictFrom(probation.weight > capacity * PROBATION || main.count === 0 ? probation : main);
      const queue = isProven || wasHere ? main : probation;
      const node = { item, weight, uses: 0, usedAt: now(), queue, before: undefined, after: undefined };
      nodes.set(item, node);
      link(node, queue);
    },
    touch(item) {
      const node = nodes.get(item);
      if (node === undefined) return;
      const at = now();
      if (at - node.usedAt < SAME_USE_MS) return;
      node.usedAt = at;
      node.uses = Math.min(MOST_USES, node.uses + 1);
    },
    remove(item) {
      const node = nodes.get(item);
      if (node === undefined) return;
      unlink(node);
      nodes.delete(item);
    },
    has: (item) => nodes.has(item),
    get weight() {
      return probation.weight + main.weight;
    },
  };
}

function emptyQueue<T>(): Queue<T> {
  return { first: undefined, last: undefined, weight: 0, count: 0 };
}

function link<T>(node: Node<T>, queue: Queue<T>): void {
  node.queue = queue;
  node.before = queue.last;
  node.after = undefined;
  if (queue.last === undefined) queue.first = node;
  else queue.last.after = node;
  queue.last = node;
  queue.weight += node.weight;
  queue.count += 1;
}

function unlink<T>(node: Node<T>): void {
  const { queue, before, after } = node;
  if (before === undefined) queue.first = after;
  else before.after = after;
  if (after === undefined) queue.last = before;
  else after.before = before;
  queue.weight -= node.weight;
  queue.count -= 1;
}
