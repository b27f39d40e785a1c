// Computes maps of vectors beside the page, which stays responsive.

import { type PlaneMap, planeOf } from "./components.ts";

/** Task of the worker. */
export interface MapTask {
  /** Numbers of all vectors, row by row. */
  readonly vectors: Float32Array;
  readonly dimension: number;
}

/** What the worker reports. */
export type MapNews =
  | ({ readonly kind: "done" } & PlaneMap)
  | { readonly kind: "failed"; readonly message: string };

addEventListener("message", ({ data: { vectors, dimension } }: MessageEvent<MapTask>) => {
  const news: MapNews = { kind: "done", ...planeOf(vectors, dimension) };
  postMessage(news);
});
