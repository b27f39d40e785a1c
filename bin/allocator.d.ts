export declare function allocatorVariables(
  args: readonly string[],
  environment?: Readonly<Record<string, string | undefined>>,
): Record<string, string>;
export declare function restartWith(variables: Readonly<Record<string, string>>): void;
