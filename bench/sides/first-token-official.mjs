import { auth, extractWWWAuthenticateParams } from "@modelcontextprotocol/client";
import { callback, REDIRECT_URI, TOOLS_LIST } from "../lib/sign-in.mjs";

/**
 * It looks for the metadata before the issuer's path only (RFC 8414); the service has it behind. For a comparison of the
 * rest it is led there.
 */
const fetchFn = (url, init) =>
  fetch(String(url).replace(/^(https?:\/\/[^/]+)(\/\.well-known\/oauth-authorization-server)(\/.+)$/, "$1$3$2"), init);

/** The official SDK's `auth()`, driven as its own transport drives it. */
export function open(serverUrl) {
  const kept = {};
  const provider = {
    redirectUrl: REDIRECT_URI,
    clientMetadata: {
      client_name: "official",
      redirect_uris: [REDIRECT_URI],
      grant_types: ["authorization_code", "refresh_token"],
      response_types: ["code"],
      token_endpoint_auth_method: "client_secret_basic",
    },
    clientInformation: () => kept.client,
    saveClientInformation: (client) => {
      kept.client = client;
    },
    tokens: () => kept.tokens,
    saveTokens: (tokens) => {
      kept.tokens = tokens;
    },
    redirectToAuthorization: (url) => {
      kept.url = url;
    },
    saveCodeVerifier: (verifier) => {
      kept.verifier = verifier;
    },
    codeVerifier: () => kept.verifier,
  };
  return {
    async firstCall() {
      const refused = await fetch(serverUrl, TOOLS_LIST);
      await refused.text();
      const { resourceMetadataUrl, scope } = extractWWWAuthenticateParams(refused);
      await auth(provider, { serverUrl, resourceMetadataUrl, scope, fetchFn });
      const authorizationCode = (await callback(kept.url.href)).get("code");
      await auth(provider, { serverUrl, resourceMetadataUrl, scope, authorizationCode, fetchFn });
      const headers = { ...TOOLS_LIST.headers, authorization: `Bearer ${kept.tokens.access_token}` };
      const response = await fetch(serverUrl, { ...TOOLS_LIST, headers });
      if (!response.ok) throw new Error(`HTTP ${response.status}`);
      await response.text();
    },
    async refresh() {
      if ((await auth(provider, { serverUrl, fetchFn })) !== "AUTHORIZED") throw new Error("it did not refresh");
    },
  };
}
