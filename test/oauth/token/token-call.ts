import { type Clock, systemClock } from "../../../src/http/deadline.js";
import { type PreRegisteredClient, preRegisteredClient } from "../../../src/oauth/client/client-auth.js";
import { ConnectionPool } from "../../../src/oauth/http/http.js";
import type { TokenCall } from "../../../src/oauth/token/token.js";

/** The input of a request to the token endpoint of an issuer, by a client that the issuer knows. */
export function tokenCall(
  issuer: string,
  { client, clock = systemClock }: { client: PreRegisteredClient; clock?: Clock },
): TokenCall {
  const tokenEndpoint = `${issuer}/token`;
  const { http } = new ConnectionPool({ clock }).get(tokenEndpoint);
  const { privateKey } = client;
  const server = { issuer, tokenEndpointAuthMethods: privateKey && ["private_key_jwt"] };
  const record = preRegisteredClient({ client, server });
  const call: TokenCall = { http, clock, issuer, tokenEndpoint, client: record, privateKey, signal: undefined };
  call.onClient = (accepted) => {
    call.client = accepted;
  };
  return call;
}
