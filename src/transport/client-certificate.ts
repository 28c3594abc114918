/** The client certificate for servers that request one in the TLS handshake, PEM. */
export interface ClientCertificate {
  /** The certificate, with those between it and its authority where there are any. */
  cert: string;
  /** Its private key, not encrypted. */
  key: string;
}
