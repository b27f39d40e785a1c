/** The media type of an Arrow IPC stream. */
export const ARROW_STREAM = "application/vnd.apache.arrow.stream";

/** The media type of an Arrow IPC file. */
export const ARROW_FILE = "application/vnd.apache.arrow.file";
