import { auth, extractWWWAuthenticateParams } from "@modelcontextprotocol/client";
import { callback, ledToMetadata as fetchFn, OFFICIAL_CLIENT, REDIRECT_URI, TOOLS_LIST } from "../lib/login.mjs";

/** The official SDK's `auth()`, used like its transport. */
export function open(serverUrl) {
  const kept = {};
  const provider = {
    redirectUrl: REDIRECT_URI,
    clientMetadata: OFFICIAL_CLIENT,
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
