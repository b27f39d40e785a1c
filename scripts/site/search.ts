/**
 * Returns the weight of a page among the results of a search: how something is done comes before what there is, and that before
 * decisions and sources. The browser runs the text of this function, so it uses nothing outside of itself.
 *
 * @param page the page's address below the site, with the heading
 */
export function rankInSearch(page: string): number {
  if (
    /\/docs\/(?:tutorials|how-to)\/|\/docs\/(?:install|first-keys|production|troubleshooting)\.html/.test(
      page,
    )
  )
    return 2;
  if (/\/docs\/(?:configuration|contract|cli|errors|operations|lancedb-clients)\.html/.test(page)) return 0.5;
  if (/\/docs\/adr\/|CHANGELOG\.html/.test(page)) return 0.25;
  return /\/docs\/|README\.html/.test(page) ? 1 : 0.1;
}
