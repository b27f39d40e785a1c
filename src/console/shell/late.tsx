import type { ComponentType } from "preact";
import { useCall } from "./hooks.ts";
import { ErrorNote, Waiting } from "./notes.tsx";

/** Returns a component whose module is loaded when it is shown for the first time. */
export function late<P extends object>(load: () => Promise<ComponentType<P>>): ComponentType<P> {
  return (props) => {
    // A component is a function, which a state would call.
    const { value, error, reload } = useCall(async () => ({ Shown: await load() }), []);
    if (error !== undefined) return <ErrorNote error={error} retry={reload} />;
    return value === undefined ? <Waiting what="Loading…" /> : <value.Shown {...props} />;
  };
}
