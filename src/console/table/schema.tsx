import { useState } from "preact/hooks";
import { arrowTypeName, typeInWords } from "../../client/rows/type-words.ts";
import type { JsonArrowField } from "../../gen/lance/namespace/v1/schema_pb.ts";
import type { DescribeTableResponse } from "../../gen/lance/namespace/v1/table_pb.ts";
import { Dialog } from "../shell/dialog.tsx";
import { EmptyNote } from "../shell/notes.tsx";
import { AddColumn, DropColumn, RenameColumn } from "./column-forms.tsx";
import { fieldPath } from "./index-types.ts";
import type { TableContext } from "./table-context.ts";

interface SchemaProps {
  readonly table: TableContext;
  readonly description: DescribeTableResponse;
  onChanged(): void;
}

type Change = { readonly kind: "add" } | { readonly kind: "rename" | "drop"; readonly column: string };

/** The fields of a table with their types in words, and everything that is known of the table as texts. */
export function Schema({ table, description, onChanged }: SchemaProps) {
  const { schema, metadata, properties, location } = description;
  const [change, setChange] = useState<Change>();
  const mayChange = table.permissions.has("write") && table.at.version === undefined;
  const close = () => setChange(undefined);
  const form = {
    table,
    onDone: () => {
      close();
      onChanged();
    },
  };
  return (
    <>
      {mayChange && (
        <div class="section-head">
          <h2>Fields</h2>
          <button type="button" onClick={() => setChange({ kind: "add" })}>
            Add a column
          </button>
        </div>
      )}
      {change?.kind === "add" && (
        <Dialog title="Add a column" onClose={close}>
          <AddColumn {...form} />
        </Dialog>
      )}
      {change?.kind === "rename" && (
        <Dialog title={`Rename column ${change.column}`} onClose={close}>
          <RenameColumn {...form} column={change.column} />
        </Dialog>
      )}
      {change?.kind === "drop" && (
        <Dialog title={`Drop column ${change.column}`} onClose={close}>
          <DropColumn {...form} column={change.column} />
        </Dialog>
      )}
      {schema === undefined || schema.fields.length === 0 ? (
        <EmptyNote>The table has no fields yet.</EmptyNote>
      ) : (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls it
        <section class="scroll" aria-label="Fields" tabIndex={0}>
          <table>
            <thead>
              <tr>
                <th scope="col">Field</th>
                <th scope="col">Type</th>
                <th scope="col">May be null</th>
                <th scope="col">Metadata</th>
                {mayChange && (
                  <th scope="col">
                    <span class="visually-hidden">Changes</span>
                  </th>
                )}
              </tr>
            </thead>
            <tbody>
              {schema.fields.flatMap((field) => fieldRows(field, mayChange ? setChange : undefined))}
            </tbody>
          </table>
        </section>
      )}
      <Texts title="Metadata of the schema" texts={schema?.metadata ?? {}} />
      <Texts title="Metadata of the table" texts={metadata} />
      <Texts title="Properties" texts={properties} />
      {location !== undefined && <Texts title="Storage" texts={{ location }} />}
    </>
  );
}

/** Rows for a field, and for the fields inside a group. */
function fieldRows(
  { name, type, nullable, metadata }: JsonArrowField,
  onChange: ((change: Change) => void) | undefined,
  depth = 0,
  path = fieldPath(name),
): preact.JSX.Element[] {
  const inside = type?.type === "struct" ? type.fields : [];
  return [
    <tr key={path}>
      <th scope="row" style={{ paddingInlineStart: `${depth * 20 + 12}px` }}>
        {name}
      </th>
      <td>
        {type === undefined ? (
          "unknown"
        ) : (
          <>
            {typeInWords(type)} <code class="muted">{arrowTypeName(type)}</code>
          </>
        )}
      </td>
      <td>{nullable ? "yes" : "no"}</td>
      <td>
        {Object.entries(metadata).map(([key, value]) => (
          <div key={key}>
            {key}: {value}
          </div>
        ))}
      </td>
      {onChange && (
        <td class="row-buttons">
          <button
            type="button"
            class="quiet"
            aria-label={`Rename column ${path}`}
            onClick={() => onChange({ kind: "rename", column: path })}
          >
            Rename
          </button>
          <button
            type="button"
            class="quiet"
            aria-label={`Drop column ${path}`}
            onClick={() => onChange({ kind: "drop", column: path })}
          >
            Drop
          </button>
        </td>
      )}
    </tr>,
    ...inside.flatMap((field) => fieldRows(field, onChange, depth + 1, `${path}.${fieldPath(field.name)}`)),
  ];
}

/** Texts by name, under a heading; without texts, nothing. */
function Texts({ title, texts }: { title: string; texts: Readonly<Record<string, string>> }) {
  const entries = Object.entries(texts);
  if (entries.length === 0) return null;
  return (
    <section>
      <h2>{title}</h2>
      <dl class="texts">
        {entries.map(([name, text]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{text}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}
