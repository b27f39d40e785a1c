/** Returns a page with a table in place of what is between the markers of a name. */
export function replaceBetweenMarkers(page: string, text: string, name: string, table: string): string {
  const [begin, end] = [`<!-- begin:${name} -->`, `<!-- end:${name} -->`];
  const [from, to] = [text.indexOf(begin), text.indexOf(end)];
  if (from < 0 || to < from) throw new Error(`${page} has no markers for the table "${name}"`);
  return `${text.slice(0, from + begin.length)}\n${table}\n${text.slice(to)}`;
}
