/** TLS towards an upstream, in PEM. */
export interface UpstreamTls {
  /** Certificates of the authorities that may have signed the upstream's. Default: those of Node. */
  readonly ca?: string | undefined;
  /** The gateway's own certificate, with {@link key}, for an upstream that requires one. */
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
  /** Server name to request, which the upstream's certificate must have. Default: the host of the address. */
  readonly serverName?: string | undefined;
}
