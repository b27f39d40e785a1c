import { useState } from "preact/hooks";
import { changesOf, rowChangeText, type VersionChange } from "../../client/version-changes.ts";
import type { TableVersion } from "../../gen/lance/namespace/v1/version_pb.ts";
import { ActionForm, Dialog } from "../shell/dialog.tsx";
import { formatAge, formatCount, formatTime } from "../shell/format.ts";
import { useCall } from "../shell/hooks.ts";
import { EmptyNote, ErrorNote, Waiting } from "../shell/notes.tsx";
import type { Moment, TableContext } from "./table-context.ts";

/** Versions that are shown at first, and added at a time. */
const PAGE_VERSIONS = 50;

interface VersionsProps {
  readonly table: TableContext;
  /** Version that the page shows. */
  readonly current: bigint | undefined;
  onOpen(moment: Moment): void;
  onChanged(): void;
}

/** The versions of a table as a timeline, the newest first. */
export function Versions({
  table: { connection, id, at, permissions },
  current,
  onOpen,
  onChanged,
}: VersionsProps) {
  const [limit, setLimit] = useState(PAGE_VERSIONS);
  const [restored, setRestored] = useState<bigint>();
  const { namespace } = connection;
  const { branch } = at;
  const { value, error, reload } = useCall(
    (signal) => namespace.listTableVersions({ id, branch, limit, descending: true }, { signal }),
    [namespace, id.join("/"), branch, limit, current],
  );
  // What each version did takes calls of its own, and comes later.
  const changes = useCall(
    async (signal) => {
      if (value === undefined) return new Map<bigint, VersionChange>();
      const asked = changesOf(namespace, { id, branch }, listed(value.versions), signal);
      return new Map((await Array.fromAsync(asked)).map((change) => [change.version.version, change]));
    },
    [value],
  );
  if (error !== undefined) return <ErrorNote error={error} retry={reload} />;
  if (value === undefined) return <Waiting what="Reading versions…" />;
  const versions = value.versions.toSorted((a, b) => Number(b.version - a.version));
  if (versions.length === 0) return <EmptyNote>The table has no versions.</EmptyNote>;
  const [newest] = versions;
  const close = () => setRestored(undefined);
  const restore = async (version: bigint) => {
    await namespace.restoreTable({ id, branch, version });
    close();
    reload();
    onChanged();
  };
  return (
    <>
      {restored !== undefined && (
        <Dialog title={`Restore version ${restored}`} onClose={close}>
          <ActionForm action={`Restore version ${restored}`} isReady run={() => restore(restored)}>
            <p>
              Rows, columns and indices become those of version {String(restored)}, in a new version. What was
              changed since is no longer in the table, but stays in version {String(newest?.version)}, which
              can be restored in the same way.
            </p>
          </ActionForm>
        </Dialog>
      )}
      <ol class="timeline">
        {versions.map((version, index) => (
          <li key={String(version.version)} class={version.version === current ? "is-current" : undefined}>
            <VersionHead version={version} change={changes.value?.get(version.version)} />
            <span class="timeline-actions">
              {version.version === current ? (
                <span class="badge">shown</span>
              ) : (
                <button
                  type="button"
                  onClick={() => onOpen(index === 0 ? { branch } : { branch, version: version.version })}
                >
                  Show version {String(version.version)}
                </button>
              )}
              {index > 0 && permissions.has("write") && (
                <button type="button" class="quiet" onClick={() => setRestored(version.version)}>
                  Restore
                </button>
              )}
            </span>
          </li>
        ))}
      </ol>
      {value.pageToken && (
        <button type="button" onClick={() => setLimit(limit + PAGE_VERSIONS)}>
          Older versions
        </button>
      )}
    </>
  );
}

/** Yields versions, the newest first. */
async function* listed(versions: readonly TableVersion[]): AsyncIterable<TableVersion> {
  yield* versions.toSorted((a, b) => Number(b.version - a.version));
}

/** What the operations did that made a version, in words. */
const DEEDS: Readonly<Record<string, string>> = {
  Append: "rows added",
  Overwrite: "written anew",
  Delete: "rows deleted",
  Update: "rows changed",
  Merge: "columns added",
  Project: "columns renamed or dropped",
  CreateIndex: "indices changed",
  Rewrite: "files compacted",
  ReserveFragments: "compaction prepared",
  Restore: "an older version restored",
  UpdateConfig: "metadata changed",
};

interface VersionHeadProps {
  readonly version: TableVersion;
  /** Default: not known, or not yet. */
  readonly change: VersionChange | undefined;
}

function VersionHead({ version: { version, timestampMillis, metadata }, change }: VersionHeadProps) {
  const millis = timestampMillis === undefined ? undefined : Number(timestampMillis);
  const facts = Object.entries(metadata).map(([name, value]) => `${name}: ${value}`);
  return (
    <div>
      <strong>Version {String(version)}</strong>
      {change !== undefined && <span class="deed">{deedOf(change)}</span>}
      {millis !== undefined && (
        <time dateTime={new Date(millis).toISOString()} title={formatTime(millis)}>
          {formatAge(millis, Date.now())}, {formatTime(millis)}
        </time>
      )}
      {facts.length > 0 && <span class="muted">{facts.join(", ")}</span>}
    </div>
  );
}

/** Says what a version did, how many rows that were, and how many it has. */
function deedOf(change: VersionChange): string {
  const { operation, rows, version } = change;
  const isFirst = version.version === 1n && operation === "Overwrite";
  const deed = isFirst ? "created" : operation === undefined ? "" : (DEEDS[operation] ?? operation);
  const total = rows === undefined ? "" : `${formatCount(rows)} ${rows === 1n ? "row" : "rows"}`;
  return [deed, rowChangeText(change), total].filter((each) => each !== "").join(", ");
}
