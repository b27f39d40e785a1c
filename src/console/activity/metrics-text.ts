/** A line of the text format of Prometheus. */
export interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

const LINE = /^([\w:]+)(?:\{(.*)\})?\s+(\S+)/;
const LABEL = /(\w+)="((?:[^"\\]|\\.)*)"/g;
const ESCAPES: Readonly<Record<string, string>> = { "\\n": "\n", '\\"': '"', "\\\\": "\\" };

/** Reads metrics in the text format of Prometheus. Lines of another form are left out. */
export function parseMetrics(text: string): readonly Sample[] {
  return text.split("\n").flatMap((line) => {
    const found = LINE.exec(line);
    if (found === null) return [];
    const [, name = "", labels = "", value = ""] = found;
    const pairs = Array.from(labels.matchAll(LABEL), ([, label = "", content = ""]) => [
      label,
      content.replaceAll(/\\[n"\\]/g, (found) => ESCAPES[found] ?? found),
    ]);
    return [{ name, labels: Object.fromEntries(pairs), value: value === "+Inf" ? Infinity : Number(value) }];
  });
}
