import type { IncomingMessage, ServerResponse } from "node:http";
import { splitScope } from "../../oauth/model/scope.js";
import { STATIC_SCOPES } from "./configuration.js";
import { consentPage, errorPage, loginPage, pageHeaders } from "./issuer-pages.js";
import { type Interaction, type InteractionResult, type OidcParams, type OidcProvider, paramOf } from "./oidc.js";
import { findUser, USERS } from "./users.js";

/** The login and consent pages of an authorization request. */
export async function handleInteraction(
  provider: OidcProvider,
  request: IncomingMessage,
  response: ServerResponse,
  form: URLSearchParams,
): Promise<void> {
  let interaction: Interaction;
  try {
    interaction = await provider.interactionDetails(request, response);
  } catch {
    const text = "This page has expired, or it was opened in another browser. Start again at the client.";
    return sendPage(response, 400, errorPage({ error: "invalid_request", error_description: text }));
  }
  if (request.method !== "POST") return sendPage(response, 200, ...(await pageOf(provider, interaction)));
  const result = await resultOf(provider, interaction, form);
  if (result) return provider.interactionFinished(request, response, result);
  const error = { error: "invalid_request", error_description: "The form is incomplete." };
  return sendPage(response, 400, errorPage(error));
}

/** Grants all requested scopes and returns the id of the grant. */
export async function grantAll(provider: OidcProvider, interaction: Interaction, accountId: string): Promise<string> {
  const { params, grantId } = interaction;
  const existing = grantId === undefined ? undefined : await provider.Grant.find(grantId);
  const grant = existing ?? new provider.Grant({ accountId, clientId: paramOf(params, "client_id") ?? "" });
  const scopes = scopesOf(params);
  const isStatic = (scope: string) => (STATIC_SCOPES as readonly string[]).includes(scope);
  const [statics, others] = [scopes.filter(isStatic), scopes.filter((scope) => !isStatic(scope))];
  if (statics.length > 0) grant.addOIDCScope(statics.join(" "));
  for (const resource of resourcesOf(params)) if (others.length > 0) grant.addResourceScope(resource, others.join(" "));
  return grant.save();
}

async function pageOf(
  provider: OidcProvider,
  { params, prompt, session }: Interaction,
): Promise<[string, string | undefined]> {
  const clientId = paramOf(params, "client_id") ?? "";
  const client = await provider.Client.find(clientId);
  const redirectUri = paramOf(params, "redirect_uri");
  const request = {
    clientName: client?.clientName ?? clientId,
    redirectUri,
    resource: resourcesOf(params)[0],
    scopes: scopesOf(params),
  };
  if (prompt.name === "login") return [loginPage(USERS, request), redirectUri];
  const user = findUser(session?.accountId ?? "");
  return [consentPage(user?.name ?? "", request), redirectUri];
}

async function resultOf(
  provider: OidcProvider,
  interaction: Interaction,
  form: URLSearchParams,
): Promise<InteractionResult | undefined> {
  const decision = form.get("decision");
  if (decision === "deny") return { error: "access_denied", error_description: "the user denied the request" };
  if (interaction.prompt.name === "login") {
    const user = findUser(form.get("account") ?? "");
    return user && { login: { accountId: user.id } };
  }
  const accountId = interaction.session?.accountId;
  if (decision !== "allow" || accountId === undefined) return undefined;
  return { consent: { grantId: await grantAll(provider, interaction, accountId) } };
}

function sendPage(response: ServerResponse, status: number, page: string, redirectUri?: string): void {
  response.statusCode = status;
  for (const [name, value] of Object.entries(pageHeaders(redirectUri))) response.setHeader(name, value);
  response.end(page);
}

function scopesOf(params: OidcParams): string[] {
  return splitScope(paramOf(params, "scope"));
}

function resourcesOf({ resource }: OidcParams): string[] {
  return resource === undefined ? [] : [resource].flat();
}
