import { typeInWords } from "../../client/rows/type-words.ts";
import type { JsonArrowField } from "../../gen/lance/namespace/v1/schema_pb.ts";
import type { DescribeTableResponse } from "../../gen/lance/namespace/v1/table_pb.ts";
import { EmptyNote } from "../shell/notes.tsx";

/** The fields of a table with their types in words, and everything that is known of the table as texts. */
export function Schema({ description }: { description: DescribeTableResponse }) {
  const { schema, metadata, properties, location } = description;
  return (
    <>
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
              </tr>
            </thead>
            <tbody>{schema.fields.flatMap((field) => fieldRows(field, 0))}</tbody>
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
  depth: number,
  path = name,
): preact.JSX.Element[] {
  const inside = type?.type === "struct" ? type.fields : [];
  return [
    <tr key={path}>
      <th scope="row" style={{ paddingInlineStart: `${depth * 20 + 12}px` }}>
        {name}
      </th>
      <td title={type?.logicalType || type?.type}>{type === undefined ? "unknown" : typeInWords(type)}</td>
      <td>{nullable ? "yes" : "no"}</td>
      <td>
        {Object.entries(metadata).map(([key, value]) => (
          <div key={key}>
            {key}: {value}
          </div>
        ))}
      </td>
    </tr>,
    ...inside.flatMap((field) => fieldRows(field, depth + 1, `${path}.${field.name}`)),
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
