/** A range of an `Accept` header. */
export interface MediaRange {
  /** Media type in lower case, or a pattern such as `application/*`. */
  readonly type: string;
  /** Weight from 0, for types that are refused, to 1. */
  readonly weight: number;
}

/** Returns the ranges of an `Accept` header in their order. */
export function mediaRanges(accept: string): MediaRange[] {
  return accept.split(",").map((range) => {
    const [type = "", ...parameters] = range.split(";").map((part) => part.trim().toLowerCase());
    const weight = parameters.find((parameter) => parameter.startsWith("q="))?.slice(2);
    return { type, weight: weight === undefined ? 1 : Number(weight) || 0 };
  });
}
