import { useCall } from "../shell/hooks.ts";
import { ErrorNote, Waiting } from "../shell/notes.tsx";
import type { ImportFormProps } from "./import-form.tsx";

/** The form that imports a file, which is loaded when it is shown for the first time. */
export function LateImportForm(props: ImportFormProps) {
  const { value: module, error, reload } = useCall(() => import("./import-form.tsx"), []);
  if (error !== undefined) return <ErrorNote error={error} retry={reload} />;
  return module === undefined ? <Waiting what="Loading…" /> : <module.ImportForm {...props} />;
}
