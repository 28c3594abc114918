import type { OAuthClientProvider } from "@modelcontextprotocol/sdk/client/auth.js";

/** What an official client stores of a login. */
export function memoryProvider(): OAuthClientProvider & { authorizationUrl: URL | undefined } {
  let client: ReturnType<OAuthClientProvider["clientInformation"]>;
  let tokens: ReturnType<OAuthClientProvider["tokens"]>;
  let verifier = "";
  const redirectUrl = "http://127.0.0.1:49152/callback";
  return {
    authorizationUrl: undefined,
    redirectUrl,
    clientMetadata: { client_name: "Official client", redirect_uris: [redirectUrl] },
    clientInformation: () => client,
    saveClientInformation(information) {
      client = information;
    },
    tokens: () => tokens,
    saveTokens(granted) {
      tokens = granted;
    },
    redirectToAuthorization(url) {
      this.authorizationUrl = url;
    },
    saveCodeVerifier(made) {
      verifier = made;
    },
    codeVerifier: () => verifier,
  };
}
