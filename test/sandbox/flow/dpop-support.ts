import { calculateThumbprint, generateKeyPair, generateProof, type KeyPair } from "dpop";
import type * as oauth from "oauth4webapi";
import type { Sandbox } from "../../../src/sandbox/index.js";
import { type Begun, begin, discover, landing, REDIRECT_URI, register } from "../oauth/support.js";

/** A client that has been to the authorization endpoint, and holds a key. */
export interface Ready {
  as: oauth.AuthorizationServer;
  client: oauth.Client;
  keys: KeyPair;
  /** The thumbprint of the key. */
  jkt: string;
  /** The form that redeems its code. */
  form: Record<string, string>;
}

/** An answer of the token endpoint. */
export interface Answered {
  status: number;
  nonce: string | null;
  body: Record<string, string>;
}

/** Goes as far as the code, as a client without a secret. @param bound says the key in the authorization request already */
export async function getReady(sandbox: Sandbox, bound = false): Promise<Ready> {
  const keys = await generateKeyPair("ES256");
  const jkt = await calculateThumbprint(keys.publicKey);
  const as = await discover(sandbox);
  const client = await register(as, { token_endpoint_auth_method: "none" });
  const params = { resource: sandbox.mcpUrl, scope: "mcp", ...(bound && { dpop_jkt: jkt }) };
  const begun = await begin(as, client, params);
  return { as, client, keys, jkt, form: formOf(client, begun, await landing(begun.url)) };
}

function formOf(client: oauth.Client, { verifier }: Begun, callback: URL): Record<string, string> {
  return {
    grant_type: "authorization_code",
    client_id: client.client_id,
    redirect_uri: REDIRECT_URI,
    code: callback.searchParams.get("code") ?? "",
    code_verifier: verifier,
  };
}

/** Asks the token endpoint. @param keys what a proof is made with; without them there is none */
export async function ask(
  as: oauth.AuthorizationServer,
  form: Record<string, string>,
  keys?: KeyPair,
  { nonce, headers }: { nonce?: string | undefined; headers?: Record<string, string> } = {},
): Promise<Answered> {
  const url = as.token_endpoint ?? "";
  const proof = keys && { dpop: await generateProof(keys, url, "POST", nonce) };
  const init = { method: "POST", headers: { ...headers, ...proof }, body: new URLSearchParams(form) };
  const response = await fetch(url, init);
  const body = (await response.json()) as Record<string, string>;
  return { status: response.status, nonce: response.headers.get("dpop-nonce"), body };
}

/** Calls the tool that returns the caller. */
export async function whoAmI(
  url: string,
  token: string | undefined,
  keys?: KeyPair,
  nonce?: string,
): Promise<Response> {
  const proof = keys && { dpop: await generateProof(keys, url, "POST", nonce, token) };
  return fetch(url, {
    method: "POST",
    headers: {
      authorization: `${keys ? "DPoP" : "Bearer"} ${token}`,
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      ...proof,
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "whoami", arguments: {} } }),
  });
}
