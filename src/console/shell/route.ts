/** Views of a table. */
export const TABLE_VIEWS = ["rows", "schema", "query", "versions", "refs", "indices"] as const;

export type TableView = (typeof TABLE_VIEWS)[number];

/** A page of the console. */
export type Route =
  | { readonly page: "namespace"; readonly id: readonly string[] }
  | { readonly page: "table"; readonly id: readonly string[]; readonly view: TableView }
  | { readonly page: "activity" };

/** Reads a page from the part of an address after the `#`. */
export function parseRoute(hash: string): Route {
  const [page, ...rest] = hash
    .replace(/^#?\/?/, "")
    .split("/")
    .map(decoded);
  if (page === "activity") return { page };
  const names = rest.filter((name) => name !== "");
  if (page !== "table") return { page: "namespace", id: names };
  const [view, ...id] = names;
  const known = TABLE_VIEWS.find((each) => each === view);
  return known === undefined || id.length === 0 ? { page: "namespace", id: [] } : { page, id, view: known };
}

/** Writes the link to a page. */
export function hrefOf(route: Route): string {
  switch (route.page) {
    case "activity":
      return "#/activity";
    case "namespace":
      return `#/${["namespace", ...route.id].map(encodeURIComponent).join("/")}`;
    case "table":
      return `#/${["table", route.view, ...route.id].map(encodeURIComponent).join("/")}`;
  }
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}
