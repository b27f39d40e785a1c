/** Puts a text on the clipboard. Browsers offer theirs over HTTPS and on this machine only. */
export async function copyText(text: string): Promise<void> {
  if (navigator.clipboard !== undefined) return navigator.clipboard.writeText(text);
  const area = document.createElement("textarea");
  area.value = text;
  // A modal dialog keeps the focus inside.
  (document.querySelector("dialog[open]") ?? document.body).append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}

/** Lets the browser save a file. */
export function saveFile(file: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(file);
  link.download = name;
  link.click();
  // The browser reads the file after the click.
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

/** Returns a colour of the style sheet as the browser shows it; its properties have a pair of colours, one for each scheme. */
export function colourOf(element: HTMLElement | SVGElement, property: string): string {
  const { style } = element;
  const before = style.color;
  style.color = `var(${property})`;
  const { color } = getComputedStyle(element);
  style.color = before;
  return color;
}
