import type { AccessBoundary } from "./access-boundary.ts";

/** An access to a bucket: to the object of a name, or the listing of a prefix. */
export interface Access {
  readonly bucket: string;
  readonly object?: string;
  readonly prefix?: string;
}

/**
 * Returns the roles that a boundary leaves for an access. The conditions are read as CEL, as far as boundaries use it: `startsWith` of
 * two attributes, `!`, `&&` and `||`, and strings with all escapes of CEL.
 */
export function rolesFor({ accessBoundary }: AccessBoundary, access: Access): string[] {
  const resource = `//storage.googleapis.com/projects/_/buckets/${access.bucket}`;
  return accessBoundary.accessBoundaryRules.flatMap((rule) => {
    const isOpen =
      rule.availableResource === resource && evaluate(rule.availabilityCondition.expression, access);
    return isOpen ? rule.availablePermissions.map((role) => role.replace("inRole:roles/storage.", "")) : [];
  });
}

const TERM =
  /^(!?)(resource\.name|api\.getAttribute\('storage\.googleapis\.com\/objectListPrefix', ''\))\.startsWith\('((?:[^'\\\n\r]|\\.)*)'\)/su;

function evaluate(expression: string, { bucket, object, prefix = "" }: Access): boolean {
  const name = `projects/_/buckets/${bucket}${object === undefined ? "" : `/objects/${object}`}`;
  let rest = expression;
  const alternatives: boolean[][] = [[]];
  for (;;) {
    const [term = "", not, value, text = ""] = TERM.exec(rest) ?? [];
    if (term === "") throw new Error(`no condition: ${rest}`);
    const starts = (value === "resource.name" ? name : prefix).startsWith(unescaped(text));
    alternatives.at(-1)?.push(not === "!" ? !starts : starts);
    rest = rest.slice(term.length);
    if (rest === "") return alternatives.some((all) => all.every(Boolean));
    const operator = rest.slice(0, 4);
    if (operator === " || ") alternatives.push([]);
    else if (operator !== " && ") throw new Error(`no operator: ${rest}`);
    rest = rest.slice(operator.length);
  }
}

function unescaped(text: string): string {
  return text.replaceAll(/\\(?:u([\da-f]{4})|U([\da-f]{8})|(.))/gsu, (_, short, long, single) => {
    if (single !== undefined) throw new Error(`no escape: \\${single}`);
    return String.fromCodePoint(Number.parseInt(short ?? long, 16));
  });
}
