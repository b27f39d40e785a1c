import type { SharedQuantity } from "./sharing.ts";

/** A part of a quantity, for one of several holders in a worker. */
export interface QuantityPart extends SharedQuantity {
  /** Takes the part out. */
  end(): void;
}

/**
 * Joins the parts of several holders in a worker: each sees those of the others, and other workers see the largest one.
 *
 * @param shared quantity of the workers
 */
export function joinQuantity(shared: SharedQuantity): () => QuantityPart {
  const parts = new Map<symbol, number>();
  const publish = () => shared.publish(Math.max(0, ...parts.values()));
  return () => {
    const own = Symbol();
    const others = () => [...parts].flatMap(([key, part]) => (key === own ? [] : [part]));
    return {
      publish(part) {
        parts.set(own, part);
        publish();
      },
      get others() {
        return others().reduce((sum, part) => sum + part, shared.others);
      },
      get largestOther() {
        return Math.max(shared.largestOther, ...others());
      },
      workers: shared.workers,
      end() {
        parts.delete(own);
        publish();
      },
    };
  };
}
