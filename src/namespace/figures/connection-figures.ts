/** Connections of a server since its start, for metrics. */
export interface ConnectionFigures {
  readonly open: number;
  readonly accepted: number;
  /** Bytes from clients, those of TLS included. */
  readonly received: number;
  /** Bytes to clients, those of TLS included. */
  readonly sent: number;
}
