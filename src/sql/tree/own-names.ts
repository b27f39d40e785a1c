/** Name of the table function that stands for the tables of a statement. Statements cannot name it. */
export const SCAN_FUNCTION = "lance_gateway_scan";

/** Name of the schema of tables that a process keeps. In a statement, a schema of this name is a namespace. */
export const KEPT_SCHEMA = "kept";

/** Beginning of the names of common table expressions that stand for views. Expressions of statements cannot have it. */
export const VIEW_PREFIX = "lance_gateway_view_";
