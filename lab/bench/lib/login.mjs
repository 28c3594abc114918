// Shared parts of the sides that log in.

/** A port without a listener: the callback is read from the redirect. */
export const REDIRECT_URI = "http://127.0.0.1:49152/callback";

/** A request that needs no MCP session. */
export const TOOLS_LIST = {
  method: "POST",
  headers: { "content-type": "application/json", accept: "application/json, text/event-stream" },
  body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list", params: {} }),
};

/** Logs in at a sandbox with automatic consent, and returns the parameters of the callback. */
export async function callback(url) {
  const response = await fetch(url, { redirect: "manual" });
  await response.text();
  return new URL(response.headers.get("location") ?? "").searchParams;
}

/** A login method of our client, without a user. */
export const login = {
  open: async () => ({
    redirectUri: REDIRECT_URI,
    authorize: async ({ url }) => callback(url),
    close: async () => {},
  }),
};

/**
 * The official SDKs look for the metadata only before the issuer's path (RFC 8414); the service has it after the path. This
 * redirects them, so that the rest can be compared.
 */
export function ledToMetadata(url, init) {
  const led = String(url).replace(/^(https?:\/\/[^/]+)(\/\.well-known\/oauth-authorization-server)(\/.+)$/, "$1$3$2");
  return fetch(led, init);
}

/** The client metadata of the official SDKs' providers. */
export const OFFICIAL_CLIENT = {
  client_name: "official",
  redirect_uris: [REDIRECT_URI],
  grant_types: ["authorization_code", "refresh_token"],
  response_types: ["code"],
  token_endpoint_auth_method: "client_secret_basic",
};
