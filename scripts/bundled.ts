/**
 * Packages whose code is in the console, in addition to dependencies of the gateway. They are dependencies of
 * development, because the package contains the built console; their licences and versions count as shipped.
 */
export const BUNDLED: readonly string[] = [
  "@codemirror/autocomplete",
  "@codemirror/commands",
  "@codemirror/lang-sql",
  "@codemirror/language",
  "@codemirror/state",
  "@codemirror/streamparser",
  "@codemirror/view",
  "@lezer/common",
  "@lezer/highlight",
  "@lezer/lr",
  "@marijn/find-cluster-break",
  "crelt",
  "fflate",
  "fzstd",
  "hyparquet",
  "hyparquet-writer",
  "preact",
  "style-mod",
  "uplot",
  "w3c-keyname",
];
