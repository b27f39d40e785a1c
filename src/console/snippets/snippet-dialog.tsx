import { useState } from "preact/hooks";
import { EMPTY_FORM, type QueryForm, requestOf } from "../query/query-form.ts";
import { gatewayAddress } from "../session/connection.ts";
import { CopyButton } from "../shell/copy-button.tsx";
import { Dialog } from "../shell/dialog.tsx";
import { errorOf, useCall } from "../shell/hooks.ts";
import { ErrorNote, Waiting } from "../shell/notes.tsx";
import type { TableContext } from "../table/table-context.ts";

interface SnippetDialogProps {
  readonly table: Pick<TableContext, "connection" | "id" | "at">;
  /** Default: the first rows. */
  readonly form?: QueryForm;
  onClose(): void;
}

/** Shows how programs make a query, in several languages. */
export function SnippetDialog({
  table: { connection, id, at },
  form = EMPTY_FORM,
  onClose,
}: SnippetDialogProps) {
  const [name, setName] = useState("Python");
  const { value: module, error, reload } = useCall(() => import("./snippets.ts"), []);
  const { credential, database } = connection.session;
  const textOf = (): { readonly text: string } | { readonly failure: unknown } => {
    const place = { uri: gatewayAddress(location.href), credential: credential?.kind, database };
    try {
      const query = { id, ...at, ...requestOf(form) };
      const write = Object.entries(module?.SNIPPETS ?? {}).find(([each]) => each === name)?.[1];
      return { text: write?.(place, query) ?? "" };
    } catch (failure) {
      return { failure };
    }
  };
  const found = textOf();
  return (
    <Dialog title="The query in other programs" isWide onClose={onClose}>
      {error && <ErrorNote error={error} retry={reload} />}
      {module === undefined && error === undefined && <Waiting what="Loading…" />}
      {module !== undefined && (
        <div class="stack">
          <div class="buttons">
            {Object.keys(module.SNIPPETS).map((each) => (
              <button
                key={each}
                type="button"
                class={each === name ? "primary" : undefined}
                aria-pressed={each === name}
                onClick={() => setName(each)}
              >
                {each}
              </button>
            ))}
          </div>
          {"failure" in found ? (
            <ErrorNote error={errorOf(found.failure)} />
          ) : (
            <>
              {/* biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls it */}
              <pre class="snippet" tabIndex={0}>
                {found.text}
              </pre>
              <div class="buttons">
                <CopyButton label={`as ${name}`} textOf={() => found.text} />
              </div>
            </>
          )}
          {credential !== undefined && (
            <p class="muted">
              The credential comes from the variable LANCE_GATEWAY_API_KEY of the environment.
            </p>
          )}
        </div>
      )}
    </Dialog>
  );
}
