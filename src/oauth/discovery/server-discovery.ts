import type { PeerPolicy } from "../../http/peer-address.js";
import type { OAuthHttp } from "../http/http.js";
import type { TraceEntry } from "../http/trace.js";

/** Metadata that name an issuer and are not at its addresses. */
export interface MetadataClaim {
  /** The issuer at whose addresses they are. */
  at: string;
  /** The origin of all endpoints; default: that of the token endpoint. */
  origin: string | undefined;
}

/** Input of the search for server metadata. */
export interface ServerDiscovery {
  http: Pick<OAuthHttp, "document">;
  /** What the metadata must name. */
  issuer: string;
  /** What the MCP server names, if that is another issuer. */
  namedIssuer?: string | undefined;
  /** Set if the metadata are those of another issuer, which name this one. */
  claim?: MetadataClaim | undefined;
  policy: PeerPolicy & { missingPkceMetadata: boolean; sameOriginEndpoints: boolean };
  /** Whether clients present a certificate; selects the server's mTLS endpoint aliases (RFC 8705 section 5). */
  mutualTls?: boolean | undefined;
  trace: (entry: TraceEntry) => void;
  signal: AbortSignal | undefined;
}
