import type { PeerPolicy } from "../../http/peer-address.js";
import type { OAuthHttp } from "../http/http.js";
import type { TraceEntry } from "../http/trace.js";

/** Input of the search for server metadata. */
export interface ServerDiscovery {
  http: OAuthHttp;
  issuer: string;
  policy: PeerPolicy & { missingPkceMetadata: boolean; sameOriginEndpoints: boolean };
  /** Whether clients present a certificate; selects the server's mTLS endpoint aliases (RFC 8705 section 5). */
  mutualTls?: boolean | undefined;
  trace: (entry: TraceEntry) => void;
  signal: AbortSignal | undefined;
}
