import type { PeerPolicy } from "../../http/peer-address.js";
import type { OAuthHttp } from "../http/http.js";
import type { TraceEntry } from "../http/trace.js";

/** What finding the server metadata depends on. */
export interface ServerDiscovery {
  http: OAuthHttp;
  issuer: string;
  policy: PeerPolicy & { missingPkceMetadata: boolean; sameOriginEndpoints: boolean };
  /** Whether clients show a certificate, for which the server may have other addresses (RFC 8705 section 5). */
  mutualTls?: boolean | undefined;
  trace: (entry: TraceEntry) => void;
  signal: AbortSignal | undefined;
}
