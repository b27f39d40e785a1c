import type { JsonArrowSchema } from "../../gen/lance/namespace/v1/schema_pb.ts";
import { type QueryForm, vectorFields } from "./query-form.ts";

/** Metrics by their names in the API. */
const DISTANCES: Readonly<Record<string, string>> = {
  "": "of the index",
  l2: "Euclidean (l2)",
  cosine: "cosine",
  dot: "dot product",
};

interface QueryFieldsProps {
  readonly form: QueryForm;
  readonly schema: JsonArrowSchema | undefined;
  onChange(change: Partial<QueryForm>): void;
}

/** The fields of the form for a query. */
export function QueryFields({ form, schema, onChange }: QueryFieldsProps) {
  const vectors = vectorFields(schema);
  const names = schema?.fields.map(({ name }) => name) ?? [];
  return (
    <>
      <label class="wide">
        Vector
        <textarea
          rows={2}
          spellcheck={false}
          placeholder="[0.12, -0.5, …], or “like this” at a row"
          value={form.vector}
          onInput={({ currentTarget }) => onChange({ vector: currentTarget.value })}
        />
      </label>
      {vectors.length > 1 && (
        <Choice
          label="Field of the vector"
          value={form.vectorColumn}
          options={{
            "": "the only one that fits",
            ...Object.fromEntries(vectors.map((name) => [name, name])),
          }}
          onChange={(vectorColumn) => onChange({ vectorColumn })}
        />
      )}
      <Choice
        label="Distance"
        value={form.distance}
        options={DISTANCES}
        onChange={(distance) => onChange({ distance })}
      />
      <label>
        Rows
        <input
          type="number"
          min={1}
          value={form.limit}
          onInput={({ currentTarget }) => onChange({ limit: currentTarget.value })}
        />
      </label>
      <label class="wide">
        Words
        <input
          placeholder="words in a text field with a full-text index"
          value={form.words}
          onInput={({ currentTarget }) => onChange({ words: currentTarget.value })}
        />
      </label>
      <label class="wide">
        Filter
        <input
          placeholder="price < 20 AND category = 'shoes'"
          spellcheck={false}
          value={form.filter}
          onInput={({ currentTarget }) => onChange({ filter: currentTarget.value })}
        />
      </label>
      <details class="wide">
        <summary>Columns: {form.columns.length === 0 ? "all" : form.columns.join(", ")}</summary>
        <fieldset class="choices">
          <legend class="visually-hidden">Columns</legend>
          {names.map((name) => (
            <label key={name} class="check">
              <input
                type="checkbox"
                checked={form.columns.includes(name)}
                onChange={({ currentTarget: { checked } }) =>
                  onChange({
                    columns: names.filter((each) => (each === name ? checked : form.columns.includes(each))),
                  })
                }
              />
              {name}
            </label>
          ))}
        </fieldset>
      </details>
    </>
  );
}

interface ChoiceProps {
  readonly label: string;
  readonly value: string;
  /** Texts by value. */
  readonly options: Readonly<Record<string, string>>;
  onChange(value: string): void;
}

function Choice({ label, value, options, onChange }: ChoiceProps) {
  return (
    <label>
      {label}
      <select value={value} onChange={({ currentTarget }) => onChange(currentTarget.value)}>
        {Object.entries(options).map(([option, text]) => (
          <option key={option} value={option}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}
