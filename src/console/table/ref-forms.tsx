import { useState } from "preact/hooks";
import { ActionForm } from "../shell/action-form.tsx";
import type { TableContext } from "./table-context.ts";

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
export function CreateRef({
  kind,
  table: { connection, id, at },
  branches,
  current,
  onDone,
}: CreateRefProps) {
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
