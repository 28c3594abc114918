import type { OAuthHttp } from "../http/http.js";

/**
 * Whether the issuer has forgotten a client, by a request to the authorization endpoint without following redirects:
 * the issuer reports that in the browser only, without a callback. Only a clear rejection counts, since a page may be
 * readable in a browser only.
 */
export async function isForgotten(
  http: OAuthHttp,
  authorizationUrl: string,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  const reply = await http.probe(authorizationUrl, signal).catch((error: unknown) => {
    if (signal?.aborted) throw error;
    return undefined;
  });
  const status = reply?.status;
  return status === 400 || status === 401 || status === 403 || status === 404 || status === 422;
}
