import type { Connection } from "../session/connection.ts";
import { useCall } from "../shell/hooks.ts";
import { hrefOf } from "../shell/route.ts";

/** Most namespaces that are shown; the tree has all. */
const MOST_FOLDERS = 60;

interface FoldersProps {
  readonly connection: Connection;
  readonly id: readonly string[];
}

/** Links to the namespaces in a namespace. */
export function Folders({ connection: { namespace }, id }: FoldersProps) {
  const { value } = useCall(
    async (signal) => await namespace.listNamespaces({ id, limit: MOST_FOLDERS }, { signal }),
    [namespace, id.join("/")],
  );
  if (value === undefined || value.namespaces.length === 0) return null;
  return (
    <nav class="stack" aria-label="Namespaces">
      <h2>Namespaces</h2>
      <ul class="folders">
        {value.namespaces.map((name) => (
          <li key={name}>
            <a href={hrefOf({ page: "namespace", id: [...id, name] })}>{name}</a>
          </li>
        ))}
        {value.pageToken && <li class="muted">and others, in the tree</li>}
      </ul>
    </nav>
  );
}
