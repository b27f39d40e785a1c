import { type Passage, passagesOf } from "./markdown.ts";
import { GLOSSARY, OPENINGS, PHRASES, type ProseRule, REPLACED } from "./rules.ts";

/** A place that breaks a rule. */
export interface Finding {
  readonly file: string;
  /** Line in the file, from 1. */
  readonly line: number;
  readonly message: string;
}

const sentences = new Intl.Segmenter("en", { granularity: "sentence" });

/** Checks the prose of a Markdown text whose first line is `firstLine` of the file. */
export function lintMarkdown(file: string, text: string, firstLine = 1): Finding[] {
  return passagesOf(text).flatMap((passage) => lintPassage(file, passage, firstLine));
}

function lintPassage(file: string, passage: Passage, firstLine: number): Finding[] {
  const text = withoutQuotations(passage.text);
  const phrases = file === GLOSSARY ? PHRASES : [...PHRASES, ...REPLACED];
  const findings = phrases.flatMap((rule) =>
    [...text.matchAll(rule.pattern)].map((match) => found(rule, match[0], match.index)),
  );
  for (const { segment, index } of sentences.segment(text.replaceAll("\n", " "))) {
    // Headings and heads of tables are not sentences.
    if (!/[.!?:;]\W*$/.test(segment)) continue;
    for (const rule of OPENINGS) {
      const opening = rule.pattern.exec(segment.trim());
      if (opening) findings.push(found(rule, opening[0], index));
    }
  }
  return findings;

  function found(rule: ProseRule, words: string, at: number): Finding {
    const line = firstLine - 1 + passage.line + text.slice(0, at).split("\n").length - 1;
    return { file, line, message: `"${words.replaceAll(/\s+/g, " ")}": ${rule.advice}` };
  }
}

/** Words in quotation marks belong to another author. The length and the lines of the text stay the same. */
function withoutQuotations(text: string): string {
  return text.replaceAll(/"[^"]*"/g, (quoted) => quoted.replaceAll(/[^"\n]/g, "-"));
}
