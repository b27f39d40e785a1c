/** Name of the table function that stands for the tables of a statement. Statements cannot name it. */
export const SCAN_FUNCTION = "lance_gateway_scan";
