import { HttpHeaders } from "../http/http-headers.js";
import { type CallLimits, checkLimits } from "../http/transport.js";

/** Options of one call of the management client; each replaces that of the client. */
export interface CallOptions extends CallLimits {
  /** Aborts the call, also while it waits. */
  signal?: AbortSignal | undefined;
  /** Headers to add to each request of the call. The token and `User-Agent` of the client are not replaced. */
  headers?: Readonly<Record<string, string>> | Headers | undefined;
}

/** The headers of one call, without those that are the client's own. */
export function callHeaders(options: CallOptions): Record<string, string> {
  checkLimits(options);
  const headers = new HttpHeaders(options.headers);
  for (const name of ["accept", "authorization", "user-agent"]) headers.delete(name);
  return Object.fromEntries(headers);
}
