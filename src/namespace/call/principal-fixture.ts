import type { Principal } from "./principal.ts";

/** A caller with an API key and nothing else: no role, no group and no claim. */
export const ann: Principal = {
  by: "api-key",
  name: "ann",
  credentialId: "1",
  role: "none",
  groups: [],
  claims: {},
};
