/** Ways in which callers prove who they are. */
export type SecurityWay = "api-key" | "oidc" | "kubernetes" | "mtls";

const SCHEMES = {
  "api-key": ["ApiKey", { type: "apiKey", in: "header", name: "x-api-key" }],
  oidc: ["Token", { type: "http", scheme: "bearer", bearerFormat: "JWT" }],
  kubernetes: ["Token", { type: "http", scheme: "bearer", bearerFormat: "JWT" }],
  mtls: ["Certificate", { type: "mutualTLS" }],
} as const satisfies Record<SecurityWay, readonly [string, object]>;

/** Schemes of security, of which a request needs one. */
export interface Security {
  /** Members of the components. */
  readonly components: { readonly securitySchemes?: Readonly<Record<string, object>> };
  /** Members of the document. */
  readonly document: { readonly security?: readonly object[] };
}

/** Returns what a document says about the given ways; nothing without any. */
export function securityOf(ways: readonly SecurityWay[]): Security {
  if (ways.length === 0) return { components: {}, document: {} };
  const securitySchemes = Object.fromEntries(ways.map((way) => SCHEMES[way]));
  const security = Object.keys(securitySchemes).map((name) => ({ [name]: [] }));
  return { components: { securitySchemes }, document: { security } };
}
