/** Views of a table. */
export const TABLE_VIEWS = ["rows", "schema", "query", "map", "versions", "refs", "indices"] as const;

export type TableView = (typeof TABLE_VIEWS)[number];

/** What an address says beyond its page, such as the query of a table. */
export type Params = Readonly<Record<string, string>>;

/** A page of the console. */
export type Route =
  | { readonly page: "namespace"; readonly id: readonly string[] }
  | {
      readonly page: "table";
      readonly id: readonly string[];
      readonly view: TableView;
      /** Default: none. */
      readonly params?: Params;
    }
  | { readonly page: "activity" }
  | { readonly page: "access" }
  /** Default: no statement. */
  | { readonly page: "sql"; readonly params?: Params };

/** Reads a page from the part of an address after the `#`. */
export function parseRoute(hash: string): Route {
  const [path = "", search = ""] = hash.replace(/^#?\/?/, "").split("?");
  const [page, ...rest] = path.split("/").map(decoded);
  if (page === "activity" || page === "access") return { page };
  const params = Object.fromEntries(new URLSearchParams(search));
  const given = Object.keys(params).length > 0 && { params };
  if (page === "sql") return { page, ...given };
  const names = rest.filter((name) => name !== "");
  if (page !== "table") return { page: "namespace", id: names };
  const [view, ...id] = names;
  const known = TABLE_VIEWS.find((each) => each === view);
  if (known === undefined || id.length === 0) return { page: "namespace", id: [] };
  return { page, id, view: known, ...given };
}

/** Writes the link to a page. */
export function hrefOf(route: Route): string {
  switch (route.page) {
    case "activity":
    case "access":
      return `#/${route.page}`;
    case "sql":
      return `#/sql${searchOf(route.params)}`;
    case "namespace":
      return `#/${["namespace", ...route.id].map(encodeURIComponent).join("/")}`;
    case "table":
      return `#/${["table", route.view, ...route.id].map(encodeURIComponent).join("/")}${searchOf(route.params)}`;
  }
}

/** Opens a page; the browser goes back from it. */
export function openRoute(route: Route): void {
  location.hash = hrefOf(route);
}

function searchOf(params: Params = {}): string {
  const search = new URLSearchParams(params).toString();
  return search === "" ? "" : `?${search}`;
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}
