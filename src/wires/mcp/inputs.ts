import { z } from "zod";

/** Most rows in a result. */
export const MAX_ROWS = 1_000;

/** Most names on a page of a listing. */
export const MAX_NAMES = 500;

const PATH = "Names are joined by slashes.";

/** Arguments that several tools have. */
export const INPUTS = {
  namespace: z
    .string()
    .default("")
    .describe(`Path of a namespace, such as "sales/2026". ${PATH} Default: the root.`),
  table: z.string().min(1).describe(`Path of a table, such as "orders" or "sales/orders". ${PATH}`),
  columns: z
    .array(z.string())
    .min(1)
    .optional()
    .describe("Columns to return. Default: all, except long vectors."),
  filter: z
    .string()
    .min(1)
    .optional()
    .describe("SQL condition for the rows, such as \"price > 10 AND name LIKE 'a%'\"."),
  version: z.int().min(1).optional().describe("Version of the table to read. Default: the newest."),
  branch: z.string().min(1).optional().describe("Branch of the table. Default: main."),
  pageLimit: z.int().min(1).max(MAX_NAMES).default(100).describe("Maximum number of names."),
  pageToken: z
    .string()
    .optional()
    .describe("The next_page_token of the page before. Default: the first page."),
} as const;
