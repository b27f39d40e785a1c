/** Returns a colour of the style sheet as the browser shows it; its properties have a pair of colours, one for each scheme. */
export function colourOf(element: HTMLElement | SVGElement, property: string): string {
  const { style } = element;
  const before = style.color;
  style.color = `var(${property})`;
  const { color } = getComputedStyle(element);
  style.color = before;
  return color;
}
