import { isAgentAuthError } from "../../errors.js";
import { quote, type Secret } from "../../redact.js";
import { FIRST_DOCUMENT_REDIRECT, refuseDocument, usesDocument } from "../client/metadata-document.js";
import { clientIssuer, obtainClient, redirectForm, refuseClient } from "../client/registration.js";
import { isForgotten } from "../client/registration-refusal.js";
import { acceptedTypeFor, overridesFor, requestParamsFor } from "../discovery/overrides.js";
import { newProofKey } from "../dpop/dpop.js";
import type { ServerMetadata } from "../model/metadata.js";
import { authorizationOf } from "./authorize-step.js";
import type { LoginContext } from "./login-context.js";
import type { Preparation } from "./login-plan.js";
import type { PreparedLogin } from "./prepared-login.js";

/** The redirect address that our client at an issuer is registered with, or that our metadata document has. */
export async function preferredRedirect(context: LoginContext, server: ServerMetadata): Promise<string | undefined> {
  const { store, clock } = context;
  const issuer = clientIssuer(server);
  if (await usesDocument({ ...context, server, now: clock.epoch() }, issuer)) return FIRST_DOCUMENT_REDIRECT;
  for (const form of ["http://127.0.0.1/callback", "http://localhost/callback"]) {
    const client = await store.readClient(issuer, form);
    if (client?.redirectUri) return client.redirectUri;
  }
  return undefined;
}

/**
 * Obtains a client and builds its authorization request.
 *
 * | client of the login | what the issuer says to its request | result |
 * |---|---|---|
 * | registered before the login by the user, or by this login | | this login |
 * | our metadata document | refuses it, and registers clients | a login with a registered client |
 * | registered by an earlier login | no longer knows it | a login with another registered client, once |
 */
export async function prepareLogin(
  context: LoginContext,
  preparation: Preparation & { redirectUri: string },
): Promise<PreparedLogin> {
  const { found, redirectUri, signal } = preparation;
  const form = redirectForm(redirectUri);
  const known = await context.store.readClient(clientIssuer(found.issuer), form);
  const proofKey = await newProofKey(context.dpop, found);
  const login = await prepareRequest(context, preparation, proofKey);
  if (login.client.source === "metadata-document") return withAcceptedClient(context, preparation, login);
  if (login.client.source !== "dynamic" || login.client.clientId !== known?.clientId) return login;
  if (!(await isForgotten(context.http, login.pending.authorizationUrl, signal))) return login;
  await refuseClient({ ...context, signal }, login.client, form);
  const again = await prepareRequest(context, preparation, proofKey);
  const isSame = again.client.clientId === login.client.clientId;
  const what = isSame
    ? "three were registered within a day, so that it is used once more; a client that the issuer knows beforehand avoids this"
    : "another one is registered";
  const why = `the issuer no longer knows this client; ${what}`;
  const { issuer, authorizationEndpoint: url } = found.issuer;
  context.trace({ step: "authorization", method: "GET", url, used: false, why });
  if (isSame) context.onProgress?.({ about: "login", text: `${quote(issuer)}: ${why}` });
  return again;
}

/** A login whose client is the one that the issuer knows at this moment, or registers. */
async function prepareRequest(
  context: LoginContext,
  { found, scope, addedScope, resource, redirectUri, signal }: Preparation & { redirectUri: string },
  proofKey: Secret | undefined,
): Promise<PreparedLogin> {
  const { server, issuer } = found;
  const now = context.clock.epoch();
  const client = await obtainClient({ ...context, server: issuer, redirectUri, scope, now, signal });
  const login = {
    server,
    account: context.loginHint,
    issuer,
    client,
    scope,
    addedScope,
    resource,
    overrides: overridesFor(issuer, context),
    acceptedTokenType: acceptedTypeFor(issuer, context),
    ...requestParamsFor(issuer, context),
    proofKey,
  };
  return { ...login, pending: await authorizationOf(context, login, redirectUri) };
}

/**
 * The login with our metadata document; if the issuer refuses that, with a client that it registers. Some issuers say so
 * in the browser only, and show a page there that does not lead back.
 */
async function withAcceptedClient(
  context: LoginContext,
  preparation: Preparation & { redirectUri: string },
  login: PreparedLogin,
): Promise<PreparedLogin> {
  const { issuer, client, pending } = login;
  if (issuer.registrationEndpoint === undefined) return login;
  if (!(await isForgotten(context.http, pending.authorizationUrl, preparation.signal))) return login;
  const registered = await prepareLogin({ ...context, clientMetadataUrl: undefined }, preparation).catch(
    (error: unknown) => {
      // The page may be readable in a browser only, and the document is the only client left.
      if (isAgentAuthError(error) && (error.class === "auth" || error.class === "remote")) return undefined;
      throw error;
    },
  );
  if (registered === undefined) return login;
  await refuseDocument(context.store, client, context.clock.epoch());
  const text = `${quote(issuer.issuer)} refuses the client metadata document ${quote(client.clientId)}; a registered client is used instead`;
  context.onProgress?.({ about: "login", text });
  return registered;
}
