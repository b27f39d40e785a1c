import { useState } from "preact/hooks";
import { ActionForm, Dialog, DropForm } from "../shell/dialog.tsx";
import { formatTime } from "../shell/format.ts";
import { type Outcome, useCall } from "../shell/hooks.ts";
import { EmptyNote, ErrorNote, Waiting } from "../shell/notes.tsx";
import type { Moment, TableContext } from "./table-context.ts";

interface RefsProps {
  readonly table: TableContext;
  /** Version that the page shows. */
  readonly current: bigint | undefined;
  onOpen(moment: Moment): void;
  onBranchDropped(name: string): void;
}

/** A branch or a tag. */
interface Ref {
  readonly kind: "branch" | "tag";
  readonly name: string;
  /** What it is, in words. */
  readonly detail: string;
  readonly moment: Moment;
}

type Action =
  | { readonly does: "create"; readonly kind: Ref["kind"] }
  | { readonly does: "drop"; readonly ref: Ref };

/** The branches and the tags of a table. */
export function Refs({ table, current, onOpen, onBranchDropped }: RefsProps) {
  const { connection, id, permissions } = table;
  const { namespace } = connection;
  const [action, setAction] = useState<Action>();
  const inputs = [namespace, id.join("/")];
  const branches = useCall(async (signal): Promise<readonly Ref[]> => {
    const found = await Array.fromAsync(namespace.listTableBranches({ id }, { signal }));
    return found.map(([name, { parentBranch, parentVersion, createAt }]) => ({
      ...{ kind: "branch", name, moment: { branch: name } },
      detail: `from version ${parentVersion} of ${parentBranch ?? "main"}, ${formatTime(Number(createAt) * 1000)}`,
    }));
  }, inputs);
  const tags = useCall(async (signal): Promise<readonly Ref[]> => {
    const found = await Array.fromAsync(namespace.listTableTags({ id }, { signal }));
    return found.map(([name, { version, branch }]) => ({
      ...{ kind: "tag", name, moment: { version, branch } },
      detail: `version ${version} of ${branch ?? "main"}`,
    }));
  }, inputs);
  const done = () => {
    setAction(undefined);
    branches.reload();
    tags.reload();
  };
  const drop = async ({ kind, name }: Ref) => {
    if (kind === "tag") await namespace.deleteTableTag({ id, tag: name });
    else {
      await namespace.deleteTableBranch({ id, name });
      onBranchDropped(name);
    }
    done();
  };
  const list = { mayChange: permissions.has("write"), onOpen, onAction: setAction };
  return (
    <>
      <RefList {...list} kind="branch" refs={branches} empty="There is only the main branch." />
      <RefList {...list} kind="tag" refs={tags} empty="The table has no tags." />
      {action?.does === "create" && (
        <Dialog title={`New ${action.kind}`} onClose={() => setAction(undefined)}>
          <CreateRef
            kind={action.kind}
            table={table}
            branches={branches.value?.map(({ name }) => name) ?? []}
            current={current}
            onDone={done}
          />
        </Dialog>
      )}
      {action?.does === "drop" && (
        <Dialog title={`Drop ${action.ref.kind} ${action.ref.name}`} onClose={() => setAction(undefined)}>
          <DropForm name={action.ref.name} drop={() => drop(action.ref)}>
            {action.ref.kind === "tag"
              ? "The version stays until upkeep prunes it like any other."
              : "The branch and its versions are deleted. Nothing brings them back."}
          </DropForm>
        </Dialog>
      )}
    </>
  );
}

interface RefListProps {
  readonly kind: Ref["kind"];
  readonly refs: Outcome<readonly Ref[]>;
  /** Says that there are none. */
  readonly empty: string;
  readonly mayChange: boolean;
  onOpen(moment: Moment): void;
  onAction(action: Action): void;
}

function RefList({ kind, refs: { value, error, reload }, empty, mayChange, onOpen, onAction }: RefListProps) {
  const title = kind === "branch" ? "Branches" : "Tags";
  return (
    <>
      <div class="section-head">
        <h2>{title}</h2>
        {mayChange && (
          <button type="button" onClick={() => onAction({ does: "create", kind })}>
            New {kind}
          </button>
        )}
      </div>
      {error && <ErrorNote error={error} retry={reload} />}
      {value === undefined && error === undefined && <Waiting what={`Reading ${title.toLowerCase()}…`} />}
      {value?.length === 0 && <EmptyNote>{empty}</EmptyNote>}
      <ul class="cards">
        {value?.map((ref) => (
          <li key={ref.name}>
            <strong>{ref.name}</strong>
            <span class="muted">{ref.detail}</span>
            <span class="card-actions">
              <button type="button" onClick={() => onOpen(ref.moment)}>
                Show {kind} {ref.name}
              </button>
              {mayChange && (
                <button
                  type="button"
                  class="danger"
                  aria-label={`Drop ${kind} ${ref.name}`}
                  onClick={() => onAction({ does: "drop", ref })}
                >
                  Drop
                </button>
              )}
            </span>
          </li>
        ))}
      </ul>
    </>
  );
}

/** The main branch, which listings leave out. */
const MAIN = "main";

interface CreateRefProps {
  readonly kind: "branch" | "tag";
  readonly table: TableContext;
  /** Branches to choose from, besides the main one. */
  readonly branches: readonly string[];
  /** Version that the page shows. */
  readonly current: bigint | undefined;
  onDone(): void;
}

/** The form for a branch that starts from a version, or for a tag of a version. */
function CreateRef({ kind, table: { connection, id, at }, branches, current, onDone }: CreateRefProps) {
  const isTag = kind === "tag";
  const shown = isTag ? current : at.version;
  const [name, setName] = useState("");
  const [branch, setBranch] = useState(at.branch ?? MAIN);
  const [version, setVersion] = useState(shown?.toString() ?? "");
  const { namespace } = connection;
  const create = async () => {
    const from = branch === MAIN ? undefined : branch;
    if (isTag) await namespace.createTableTag({ id, tag: name, branch: from, version: BigInt(version) });
    else {
      const fromVersion = version === "" ? undefined : BigInt(version);
      await namespace.createTableBranch({ id, name, fromBranch: from, fromVersion });
    }
    onDone();
  };
  const hasVersion = version === "" ? !isTag : /^\d+$/.test(version);
  return (
    <ActionForm action="Create" isReady={name !== "" && hasVersion} run={create}>
      <label>
        Name
        <input value={name} onInput={({ currentTarget }) => setName(currentTarget.value)} />
      </label>
      <label>
        {isTag ? "Branch" : "From branch"}
        <select value={branch} onChange={({ currentTarget }) => setBranch(currentTarget.value)}>
          {[MAIN, ...branches].map((each) => (
            <option key={each}>{each}</option>
          ))}
        </select>
      </label>
      <label>
        {isTag ? "Version" : "From version"}
        <input
          type="number"
          min={1}
          placeholder={isTag ? undefined : "the newest"}
          value={version}
          onInput={({ currentTarget }) => setVersion(currentTarget.value)}
        />
      </label>
    </ActionForm>
  );
}
