/** Number of rows of a search by default. */
export const DEFAULT_SEARCH_ROWS = 10;
