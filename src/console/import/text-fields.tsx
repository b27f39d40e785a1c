import * as arrow from "apache-arrow";
import { TYPE_NAMES, typeOfName } from "../../client/text/type-names.ts";
import { namesOf } from "../rows/type-description.ts";
import type { TextChoices } from "./convert-worker.ts";

interface FieldProps {
  readonly choices: TextChoices;
  onChange(choices: TextChoices): void;
}

/** Encodings to choose from, as the WHATWG names them. */
const ENCODINGS = [
  ...["utf-8", "utf-16le", "utf-16be", "windows-1252", "iso-8859-2", "iso-8859-15", "windows-1250"],
  ...["windows-1251", "koi8-r", "macintosh", "shift_jis", "euc-jp", "gb18030", "big5", "euc-kr"],
];

/** The encoding of a text. */
export function EncodingField({ choices, onChange }: FieldProps) {
  return (
    <label>
      Encoding of the text
      <select
        value={choices.encoding ?? ""}
        onChange={({ currentTarget: { value } }) => onChange({ ...choices, encoding: value || undefined })}
      >
        <option value="">UTF-8, or as its first bytes say</option>
        {ENCODINGS.map((encoding) => (
          <option key={encoding} value={encoding}>
            {encoding}
          </option>
        ))}
      </select>
    </label>
  );
}

/** Whether numbers are rounded. */
export function RoundingField({ choices, onChange }: FieldProps) {
  return (
    <label class="check">
      <input
        type="checkbox"
        checked={choices.isRounded}
        onChange={({ currentTarget: { checked } }) => onChange({ ...choices, isRounded: checked })}
      />
      Round numbers with more digits than their column holds
    </label>
  );
}

/** A column of a text. */
export interface TextColumn {
  readonly name: string;
  /** Type that its values have in common. Default: none is known. */
  readonly type?: arrow.DataType;
}

/** The types of the columns. */
export function TypeFields({
  columns,
  choices,
  onChange,
}: FieldProps & { readonly columns: readonly TextColumn[] }) {
  const choose = (column: string, type: string) => {
    const { [column]: _before, ...others } = choices.types;
    onChange({ ...choices, types: type === "" ? others : { ...others, [column]: type } });
  };
  return (
    <fieldset class="columns import-types">
      <legend>Types of the columns</legend>
      {columns.map(({ name, type }) => (
        <label key={name}>
          <span class="import-name">{name}</span>
          <select
            aria-label={`Type of ${name}`}
            value={choices.types[name] ?? ""}
            onChange={({ currentTarget: { value } }) => choose(name, value)}
          >
            <option value="">
              {type !== undefined && choices.types[name] === undefined
                ? `${labelOf(type)}, by its values`
                : "By its values"}
            </option>
            {namesFor(type).map((each) => (
              <option key={each} value={each}>
                {labelOf(typeOfName(arrow, each))}
              </option>
            ))}
          </select>
        </label>
      ))}
    </fieldset>
  );
}

/** Returns a type in words, with its Arrow name beside them. */
function labelOf(type: arrow.DataType): string {
  const { words, arrowName } = namesOf(type);
  return `${words} · ${arrowName}`;
}

/** Vectors have the length that was found. */
function namesFor(type: object = {}): readonly string[] {
  const plain = TYPE_NAMES.filter((name) => !name.startsWith("vector"));
  if (!("listSize" in type)) return plain;
  return [...plain, `vector(${type.listSize})`, `vector(${type.listSize},float64)`];
}
