import { expect, test } from "vitest";
import { planeOf } from "./components.ts";

test("points on a plane in many dimensions keep their distances", () => {
  const flat = Array.from({ length: 50 }, (_, at) => [Math.cos(at) * 3, Math.sin(at * 2)] as const);
  const [one, other] = [
    [0.6, 0.8, 0, 0, 0],
    [0, 0, 1, 0, 0],
  ];
  const vectors = Float32Array.from(
    flat.flatMap(([x, y]) => (one ?? []).map((value, at) => value * x + (other?.[at] ?? 0) * y + 7)),
  );
  const { points, shares } = planeOf(vectors, 5);
  const distance = (a: readonly number[], b: readonly number[]) =>
    Math.hypot((a[0] ?? 0) - (b[0] ?? 0), (a[1] ?? 0) - (b[1] ?? 0));
  for (const [a, b] of [
    [0, 1],
    [3, 40],
    [10, 25],
  ] as const)
    expect(
      distance([...points.subarray(2 * a, 2 * a + 2)], [...points.subarray(2 * b, 2 * b + 2)]),
    ).toBeCloseTo(distance(flat[a] ?? [], flat[b] ?? []), 2);
  expect(shares[0]).toBeGreaterThan(shares[1]);
  expect(shares[0] + shares[1]).toBeCloseTo(1, 3);
});

test("equal vectors are one point", () => {
  const { points, shares } = planeOf(new Float32Array(12).fill(2), 4);
  expect([...points]).toEqual([0, 0, 0, 0, 0, 0]);
  expect(shares).toEqual([0, 0]);
});
