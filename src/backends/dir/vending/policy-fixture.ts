interface Statement {
  readonly Effect: "Allow" | "Deny";
  readonly Action: string | readonly string[];
  readonly Resource: string;
  readonly Condition?: { readonly StringLike: Readonly<Record<string, string>> };
}

/**
 * Decides as IAM does whether a policy allows an action: `*` and `?` are wildcards, `${*}`, `${?}` and `${$}` are the
 * characters themselves, any other variable has a value, here `root`, and a denial wins.
 *
 * @param context values of the keys of conditions
 */
export function evaluate(
  policy: string,
  action: string,
  resource: string,
  context: Readonly<Record<string, string>> = {},
): boolean {
  const { Statement: statements } = JSON.parse(policy) as { readonly Statement: readonly Statement[] };
  const effects = statements.flatMap(({ Effect, Action, Resource, Condition }) => {
    const conditions = Object.entries(Condition?.StringLike ?? {});
    const matches =
      [Action].flat().includes(action) &&
      matcherOf(Resource).test(resource) &&
      conditions.every(([key, pattern]) => key in context && matcherOf(pattern).test(context[key] ?? ""));
    return matches ? [Effect] : [];
  });
  return effects.includes("Allow") && !effects.includes("Deny");
}

function matcherOf(pattern: string): RegExp {
  const source = pattern.replaceAll(/\$\{([^}]*)\}|[\s\S]/gu, (found, variable: string | undefined) => {
    if (variable !== undefined) return escaped(/^[*?$]$/.test(variable) ? variable : "root");
    if (found === "*") return ".*";
    return found === "?" ? "." : escaped(found);
  });
  return new RegExp(`^${source}$`, "su");
}

function escaped(text: string): string {
  return text.replaceAll(/[\\^$.*+?()[\]{}|/]/g, "\\$&");
}
