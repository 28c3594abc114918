import { credentialOf, holdToIssuer } from "./client/issuer-binding.js";
import { type PreRegisteredClient, preRegisteredClient, secretOf } from "./client/pre-registered-client.js";
import { discoverIssuer } from "./discovery/discovery.js";
import type { Grant } from "./grant/grant.js";
import type { LoginContext } from "./login/login-context.js";
import type { TokenCall } from "./token/token.js";

/** A request that is made by a client, until it is said for how long. */
export type ClientCall = Omit<TokenCall, "signal">;

/** A request with the client of a grant, and with what is not kept of it where it is the client that was given. */
export function callOf(
  { issuer, endpoints, client }: Grant,
  given: PreRegisteredClient | undefined,
  by: Pick<TokenCall, "http" | "clock">,
): ClientCall {
  const isGiven = given?.clientId === client.clientId && client.source === "pre-registered";
  const clientSecret = client.clientSecret ?? (isGiven ? secretOf(given) : undefined);
  const privateKey = isGiven ? given.privateKey : undefined;
  return { ...by, issuer, tokenEndpoint: endpoints.token, client: { ...client, clientSecret }, privateKey };
}

/** A request with the client that was given, at the issuer that a server names; undefined where none was given. */
export async function callForClient(
  context: LoginContext,
  mcpUrl: string,
  signal: AbortSignal | undefined,
): Promise<ClientCall | undefined> {
  const { preRegistered: given, http, clock } = context;
  if (given === undefined) return undefined;
  const { issuer: server, server: named } = await discoverIssuer(context, mcpUrl, undefined, signal);
  // The token to exchange is a credential as well.
  const credential = credentialOf(given) ?? "the token to exchange";
  const use = { client: given, issuer: server.issuer, server: named, credential, isInteractive: false, signal };
  await holdToIssuer(context, use);
  const client = preRegisteredClient({ ...context, client: given, server, isMachine: true });
  const { issuer, tokenEndpoint } = server;
  return { http, clock, issuer, tokenEndpoint, client, privateKey: given.privateKey };
}
