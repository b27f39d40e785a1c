/** TLS towards an upstream, in PEM. */
export interface UpstreamTls {
  /** Certificates of the authorities that may have signed the upstream's. Default: those that Node brings. */
  readonly ca?: string | undefined;
  /** The gateway's own certificate, with {@link key}, for an upstream that asks for one. */
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
  /** The name to ask for, and that the upstream's certificate has to have. Default: the host of the address. */
  readonly serverName?: string | undefined;
}
