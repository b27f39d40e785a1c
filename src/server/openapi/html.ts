/** Text of HTML; nothing else may be put into a page unescaped. */
export class Html {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

type Part = Html | string | number | undefined | readonly Part[];

const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

/** Tag of templates that escapes every value that is not HTML itself; undefined is nothing. */
export function html(strings: TemplateStringsArray, ...parts: readonly Part[]): Html {
  return new Html(strings.reduce((text, string, index) => text + textOf(parts[index - 1]) + string));
}

function textOf(part: Part): string {
  if (part instanceof Html) return part.text;
  if (Array.isArray(part)) return part.map(textOf).join("");
  return part === undefined ? "" : String(part).replaceAll(/[&<>"']/g, (each) => ENTITIES[each] as string);
}

/** Returns a comment of the contract, whose words in backquotes are code. */
export function prose(comment = ""): Html[] {
  return comment.split("\n\n").map((paragraph) => {
    const pieces = paragraph.split(/`([^`]*)`/);
    return html`<p>${pieces.map((piece, index) => (index % 2 === 1 ? html`<code>${piece}</code>` : piece))}</p>`;
  });
}
