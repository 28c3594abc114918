import { credentialOf, holdToIssuer } from "./client/issuer-binding.js";
import { type PreRegisteredClient, preRegisteredClient, secretOf } from "./client/pre-registered-client.js";
import { acceptedTypeFor, discoverIssuer } from "./discovery/discovery.js";
import type { LoginContext } from "./login/login-context.js";
import type { Grant } from "./model/grant.js";
import type { TokenCall } from "./token/token.js";

/** A request by a client, without its signal. */
export type ClientCall = Omit<TokenCall, "signal">;

/** A request by the client of a grant; unstored credentials come from the options if they name the same client. */
export function callOf(
  { issuer, endpoints, client }: Grant,
  preRegistered: PreRegisteredClient | undefined,
  by: Pick<TokenCall, "http" | "clock" | "acceptedTokenType" | "trace">,
): ClientCall {
  const isSameClient = preRegistered?.clientId === client.clientId && client.source === "pre-registered";
  const clientSecret = client.clientSecret ?? (isSameClient ? secretOf(preRegistered) : undefined);
  const privateKey = isSameClient ? preRegistered.privateKey : undefined;
  return { ...by, issuer, tokenEndpoint: endpoints.token, client: { ...client, clientSecret }, privateKey };
}

/** A request by the client of the options, at the issuer that a server names; undefined without such a client. */
export async function callForClient(
  context: LoginContext,
  mcpUrl: string,
  signal: AbortSignal | undefined,
): Promise<ClientCall | undefined> {
  const { preRegistered, http, clock, trace } = context;
  if (preRegistered === undefined) return undefined;
  const { issuer: server, server: named } = await discoverIssuer(
    { ...context, chosenIssuer: undefined, sendsCredential: true },
    mcpUrl,
    undefined,
    signal,
  );
  // The token to exchange is a credential too.
  const credential = credentialOf(preRegistered) ?? "the token to exchange";
  const use = { client: preRegistered, issuer: server.issuer, server: named, credential, isInteractive: false, signal };
  await holdToIssuer(context, use);
  const client = preRegisteredClient({ ...context, client: preRegistered, server, isMachine: true });
  const { issuer, tokenEndpoint } = server;
  const acceptedTokenType = acceptedTypeFor(server, context);
  const { privateKey } = preRegistered;
  return { http, clock, issuer, tokenEndpoint, client, privateKey, acceptedTokenType, trace };
}
