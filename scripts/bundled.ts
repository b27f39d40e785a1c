/**
 * Packages whose code is in the console, in addition to dependencies of the gateway. They are dependencies of
 * development, because the package contains the built console; their licences and versions count as shipped.
 */
export const BUNDLED: readonly string[] = [
  "fflate",
  "fzstd",
  "hyparquet",
  "hyparquet-writer",
  "preact",
  "uplot",
];
