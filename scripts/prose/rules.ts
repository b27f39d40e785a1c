import { readFileSync } from "node:fs";
import { join } from "node:path";

/** The page with the project's terms. It alone may name the words that they replace. */
export const GLOSSARY = join("docs", "glossary.md");

/** A turn of phrase that the documentation avoids, and the advice that a finding gives. */
export interface ProseRule {
  readonly pattern: RegExp;
  readonly advice: string;
}

/**
 * Openings that leave the reader looking for the subject. They apply to whole sentences; headings ("What is tested") and
 * heads of tables may use them.
 */
export const OPENINGS: readonly ProseRule[] = [
  { pattern: /^One\b/, advice: "name the subject, or write a, an, a single or each" },
  { pattern: /^What(?:ever)?\b(?!.*\?$)/, advice: "begin with the actor" },
  {
    pattern: /^(?:Who|Whoever|Whose)\b(?!.*\?$)/,
    advice: "begin with the actor: a client that, a caller that",
  },
  { pattern: /^The same\b/, advice: "name the thing that is equal" },
  { pattern: /^Such\b/, advice: "name the thing: these requests, a table of this kind" },
];

/** Words and phrases for which the documentation has a plainer term, anywhere in a text. */
export const PHRASES: readonly ProseRule[] = [
  { pattern: /\bshall\b/gi, advice: "write must, or the present tense" },
  { pattern: /\bwill\b/gi, advice: "write the present tense" },
  { pattern: /\b(?:is|are) (?:not )?meant\b/gi, advice: "say what is supported" },
  { pattern: /\b(?:un)?settl(?:e|es|ed|ing)\b/gi, advice: "write resolve, finish, record or decide" },
  { pattern: /\b(?:stands?|stood|standing)\b/gi, advice: "write is, means or remains" },
  {
    pattern:
      /\b(?:is|are|was|were) no (?!longer\b|more\b|less\b|later\b|earlier\b|older\b|newer\b|larger\b)/gi,
    advice: "write is not, or say what it is",
  },
  { pattern: /\b(?:tells?|told) of\b/gi, advice: "write describes, reports or names" },
  { pattern: /\bcomes? before all\b/gi, advice: "write overrides" },
  { pattern: /\bbut for\b/gi, advice: "write except for" },
  { pattern: /\bby way of\b/gi, advice: "write through" },
  { pattern: /\banew\b/gi, advice: "write again" },
  { pattern: /\bof before\b/gi, advice: "write earlier, or name the release" },
  { pattern: /\bwhoever\b/gi, advice: "name the actor" },
  { pattern: /\blies? (?:in|on|below|beside)\b/gi, advice: "write is" },
  { pattern: /\bdear(?:er|est)?\b/gi, advice: "write expensive" },
  { pattern: /\b(?:obviously|basically|simply)\b/gi, advice: "leave it out" },
  { pattern: /\b([a-z]+) \1\b/g, advice: "a word is repeated" },
];

/** Words that the glossary replaces, in the third column of its tables, with the term in the first one. */
export const REPLACED: readonly ProseRule[] = readFileSync(
  join(import.meta.dirname, "..", "..", GLOSSARY),
  "utf8",
)
  .split("\n")
  .map((line) => line.split("|").map((cell) => cell.trim()))
  .filter(([, term, , words = ""]) => term !== "Term" && /^\w/.test(words))
  .map(([, term, , words = ""]) => ({
    pattern: new RegExp(`\\b${words.replaceAll(" ", "\\s+")}\\b`, "gi"),
    advice: `write ${term} (${GLOSSARY})`,
  }));
