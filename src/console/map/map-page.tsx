import { useEffect, useMemo, useState } from "preact/hooks";
import type { JsonArrowSchema } from "../../gen/lance/namespace/v1/schema_pb.ts";
import { vectorFields } from "../query/query-form.ts";
import { cellOf } from "../rows/cells.ts";
import { Grid } from "../rows/grid.tsx";
import { formatCount } from "../shell/format.ts";
import { useCall } from "../shell/hooks.ts";
import { EmptyNote, ErrorNote, Waiting } from "../shell/notes.tsx";
import type { TableContext } from "../table/table-context.ts";
import { Plane } from "./plane.tsx";
import { readSample, type Sample } from "./sample.ts";

/** Numbers of rows that a sample can have. */
const SIZES = [500, 2_000, 5_000] as const;

/** Most groups with a colour of their own. */
const MOST_GROUPS = 7;

/** Columns whose values are groups. */
const GROUPS = /^(?:utf8|string|large_utf8|large_string|bool|boolean|u?int\d+)$/;

export interface MapPageProps {
  readonly table: TableContext;
  readonly schema: JsonArrowSchema | undefined;
}

/** A map of the vectors of a sample: rows that are near to one another are alike. */
export function MapPage({ table, schema }: MapPageProps) {
  const vectors = vectorFields(schema);
  const groups = (schema?.fields ?? [])
    .filter(({ type }) => GROUPS.test(type?.type ?? ""))
    .map(({ name }) => name);
  const { params, onParams, connection, at, current } = table;
  const column = vectors.find((name) => name === params["field"]) ?? vectors[0];
  const group = groups.find((name) => name === params["group"]);
  const size = SIZES.find((each) => String(each) === params["rows"]) ?? SIZES[1];
  const [chosen, setChosen] = useState<number>();
  const { value, error, isRunning, reload } = useCall(
    async (signal) => (column === undefined ? undefined : readSample(table, column, size, signal)),
    [connection, table.id.join("/"), at.version, at.branch, current, column, size],
  );
  useEffect(() => setChosen(undefined), [value]);
  const labels = useMemo(() => (value && group ? labelsOf(value, group) : undefined), [value, group]);
  if (column === undefined) return <EmptyNote>The table has no column of vectors.</EmptyNote>;
  const row = chosen === undefined ? undefined : value?.rows[chosen];
  return (
    <>
      <div class="query map-fields">
        {vectors.length > 1 && (
          <Select
            label="Vectors"
            value={column}
            options={vectors.map((name) => [name, name])}
            onChange={(field) => onParams({ field })}
          />
        )}
        <Select
          label="Colour"
          value={group ?? ""}
          options={[["", "one for all"], ...groups.map((name) => [name, `by ${name}`] as const)]}
          onChange={(name) => onParams({ group: name || undefined })}
        />
        <Select
          label="Sample"
          value={String(size)}
          options={SIZES.map((each) => [String(each), `${formatCount(each)} rows`])}
          onChange={(rows) => onParams({ rows })}
        />
      </div>
      {error && <ErrorNote error={error} retry={reload} />}
      {isRunning && <Waiting what="Reading vectors and computing the map…" />}
      {value !== undefined && error === undefined && value.rows.length === 0 && (
        <EmptyNote>No row of the sample has a vector.</EmptyNote>
      )}
      {value !== undefined && value.rows.length > 0 && (
        <>
          <p class="muted">{factsOf(value)}</p>
          <Plane
            points={value.points}
            groups={labels?.groups}
            names={labels?.names ?? []}
            chosen={chosen}
            onChosen={setChosen}
          />
          {row === undefined ? (
            <p class="muted">Choose a point, by click or with the arrow keys, to see its row.</p>
          ) : (
            <Grid
              rows={(value.parts[row[0]] as Sample["parts"][number]).slice(row[1], row[1] + 1)}
              offset={0}
              caption="The chosen row"
            />
          )}
        </>
      )}
    </>
  );
}

function factsOf({ rows, total, without, shares }: Sample): string {
  const part = rows.length + without < total ? "from eight places of the table" : "all rows";
  const left = without > 0 ? `, ${formatCount(without)} without a vector left out` : "";
  const [across, up] = shares.map((share) => `${Math.round(share * 100)}\u00a0%`);
  return `${formatCount(rows.length)} vectors, ${part}${left}. Principal components: across shows ${across} of the differences, upwards ${up}.`;
}

interface Labels {
  /** Group of each point; undefined for one of those without a colour of their own. */
  readonly groups: readonly (number | undefined)[];
  readonly names: readonly string[];
}

/** Returns the groups of the points by a column, the largest first. */
function labelsOf({ parts, rows }: Sample, column: string): Labels {
  const values = parts.map((part) => part.getChild(column));
  const texts = rows.map(([part, index]) => {
    const vector = values[part];
    const cell = vector && cellOf(vector, index);
    return cell && "text" in cell ? cell.text : "null";
  });
  const counts = new Map<string, number>();
  for (const text of texts) counts.set(text, (counts.get(text) ?? 0) + 1);
  const names = Array.from(counts)
    .toSorted(([, a], [, b]) => b - a)
    .slice(0, MOST_GROUPS)
    .map(([name]) => name);
  const places = new Map(names.map((name, at) => [name, at]));
  return {
    groups: texts.map((text) => places.get(text)),
    names: counts.size > names.length ? [...names, ""] : names,
  };
}

interface SelectProps {
  readonly label: string;
  readonly value: string;
  readonly options: readonly (readonly [value: string, text: string])[];
  onChange(value: string): void;
}

function Select({ label, value, options, onChange }: SelectProps) {
  return (
    <label>
      {label}
      <select value={value} onChange={({ currentTarget }) => onChange(currentTarget.value)}>
        {options.map(([option, text]) => (
          <option key={option} value={option}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}
