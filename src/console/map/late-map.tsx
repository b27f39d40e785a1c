import { useCall } from "../shell/hooks.ts";
import { ErrorNote, Waiting } from "../shell/notes.tsx";
import type { MapPageProps } from "./map-page.tsx";

/** The map of vectors, which is loaded when it is shown for the first time. */
export function LateMap(props: MapPageProps) {
  const { value: module, error, reload } = useCall(() => import("./map-page.tsx"), []);
  if (error !== undefined) return <ErrorNote error={error} retry={reload} />;
  return module === undefined ? <Waiting what="Loading…" /> : <module.MapPage {...props} />;
}
