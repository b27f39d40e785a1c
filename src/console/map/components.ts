/** Vectors as points of a plane. */
export interface PlaneMap {
  /** Two numbers for each vector. */
  readonly points: Float32Array;
  /** Part of the differences between the vectors that each axis shows, from 0 to 1. */
  readonly shares: readonly [number, number];
}

/** Most steps of an axis; it is found earlier if it rests. */
const MOST_STEPS = 60;
/** Change of an axis under which it rests. */
const REST = 1e-7;

/**
 * Projects vectors on their two principal components, which power iteration finds.
 *
 * @param vectors all numbers, row by row; they are moved so that their mean is zero
 */
export function planeOf(vectors: Float32Array, dimension: number): PlaneMap {
  const count = vectors.length / dimension;
  centre(vectors, dimension);
  const total = vectors.reduce((sum, value) => sum + value * value, 0);
  const points = new Float32Array(count * 2);
  const shares: [number, number] = [0, 0];
  const found: Float64Array[] = [];
  for (const axis of [0, 1] as const) {
    const { direction, size } = principal(vectors, dimension, found);
    found.push(direction);
    shares[axis] = total > 0 ? size / total : 0;
    const along = product(vectors, dimension, direction);
    for (let at = 0; at < count; at++) points[2 * at + axis] = along[at] ?? 0;
  }
  return { points, shares };
}

function centre(vectors: Float32Array, dimension: number): void {
  const count = vectors.length / dimension;
  const mean = new Float64Array(dimension);
  for (let at = 0; at < vectors.length; at++)
    mean[at % dimension] = (mean[at % dimension] ?? 0) + (vectors[at] ?? 0);
  for (let at = 0; at < vectors.length; at++)
    vectors[at] = (vectors[at] ?? 0) - (mean[at % dimension] ?? 0) / count;
}

/** Finds the direction of the largest differences that is at right angles to others, and their size. */
function principal(vectors: Float32Array, dimension: number, others: readonly Float64Array[]) {
  // A fixed start, so that a map looks the same each time; no axis is likely to be at right angles to it.
  let direction = Float64Array.from({ length: dimension }, (_, at) => Math.sin(at + 1 + others.length));
  let size = 0;
  straighten(direction, others);
  scale(direction);
  for (let step = 0; step < MOST_STEPS; step++) {
    const along = product(vectors, dimension, direction);
    const next = new Float64Array(dimension);
    for (let row = 0, at = 0; row < along.length; row++) {
      const weight = along[row] ?? 0;
      for (let column = 0; column < dimension; column++, at++)
        next[column] = (next[column] ?? 0) + weight * (vectors[at] ?? 0);
    }
    straighten(next, others);
    size = scale(next);
    const change = next.reduce((sum, value, at) => sum + (value - (direction[at] ?? 0)) ** 2, 0);
    direction = next;
    if (size === 0 || change < REST) break;
  }
  return { direction, size };
}

/** Returns how far each vector goes in a direction. */
function product(vectors: Float32Array, dimension: number, direction: Float64Array): Float64Array {
  const along = new Float64Array(vectors.length / dimension);
  for (let row = 0, at = 0; row < along.length; row++) {
    let sum = 0;
    for (let column = 0; column < dimension; column++, at++)
      sum += (vectors[at] ?? 0) * (direction[column] ?? 0);
    along[row] = sum;
  }
  return along;
}

function straighten(direction: Float64Array, others: readonly Float64Array[]): void {
  for (const other of others) {
    const overlap = other.reduce((sum, value, at) => sum + value * (direction[at] ?? 0), 0);
    for (let at = 0; at < direction.length; at++)
      direction[at] = (direction[at] ?? 0) - overlap * (other[at] ?? 0);
  }
}

/** Gives a direction the length 1, and returns the one that it had. */
function scale(direction: Float64Array): number {
  const length = Math.hypot(...chunked(direction));
  if (length > 0) for (let at = 0; at < direction.length; at++) direction[at] = (direction[at] ?? 0) / length;
  return length;
}

/** Lengths of parts, so that a call does not get thousands of arguments. */
function chunked(values: Float64Array): number[] {
  const lengths: number[] = [];
  for (let at = 0; at < values.length; at += 256) lengths.push(Math.hypot(...values.subarray(at, at + 256)));
  return lengths;
}
