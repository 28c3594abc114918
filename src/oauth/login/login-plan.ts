import { followSignal, untilAborted } from "../../http/deadline.js";
import { refusalError } from "../../http/refuse.js";
import { quote } from "../../redact.js";
import { credentialOf, holdToIssuer } from "../client/issuer-binding.js";
import { discover, discoverProvider } from "../discovery/discovery.js";
import { foreignFirstEndpoint } from "../discovery/first-endpoint.js";
import { overridesFor, resourceFor } from "../discovery/overrides.js";
import { type Discovered, type IssuerMetadata, isSameIssuer } from "../model/metadata.js";
import { scopeFor } from "../model/scope.js";
import type { LoginContext, LoginRequest } from "./login-context.js";
import type { LoginMethod } from "./login-method.js";
import { timeoutError } from "./login-timeout.js";

/** What a login is planned from. */
export interface LoginPlan extends Pick<LoginRequest, "mcpUrl" | "challenge" | "scope" | "previousScope" | "signal"> {
  flow: LoginContext["flow"];
  /** Asks the user; undefined if no user can be asked. */
  method: Pick<LoginMethod, "confirmEndpoints"> | undefined;
}

/** What a login is prepared from. */
export interface Preparation {
  /** The result of discovery. */
  found: Discovered;
  /** The scopes to request. */
  scope: readonly string[];
  /** Those of them that the caller did not request. */
  addedScope: readonly string[];
  /** The `resource` parameter; `none` if none is sent. */
  resource: string;
  /** Aborts the requests. */
  signal: AbortSignal;
}

/** Finds the issuer of a login, and checks its endpoints and the client: all that comes before the client's requests. */
export async function planLogin(
  requested: LoginContext,
  plan: LoginPlan,
): Promise<{ context: LoginContext; preparation: Preparation }> {
  const { signal } = plan;
  const found = await discoverForLogin(requested, plan);
  const context = await checkEndpointOrigins(requested, found, plan);
  await checkClientIssuer(context, found, signal);
  const wanted = scopeFor(found, plan);
  return { context, preparation: { found, ...wanted, resource: resourceFor(found, context), signal } };
}

/** Finds the issuer of a login: that of a server, or the identity provider itself. Reports what changed. */
async function discoverForLogin(context: LoginContext, { mcpUrl, challenge, signal }: LoginPlan): Promise<Discovered> {
  const found = context.requiresIdToken
    ? await discoverProvider(context, mcpUrl, signal)
    : await discover(context, mcpUrl, challenge, signal);
  reportChanges(context, found);
  return found;
}

/**
 * Reports that a server names another authorization server than at the earlier login (MCP Authorization, SEP-2352), or
 * asks for no login any more.
 */
function reportChanges(
  { remembered, onProgress }: LoginContext,
  { server, issuer, isUnprotected }: Discovered<IssuerMetadata>,
): void {
  if (isUnprotected) {
    const text = `${quote(server)} answers without a token now; this login replaces the stored one, and a logout removes it`;
    onProgress?.({ about: "login", text });
  }
  const was = remembered?.namedIssuer ?? remembered?.issuer;
  const is = issuer.namedIssuer ?? issuer.issuer;
  if (was === undefined || isSameIssuer(was, is)) return;
  const names = `${quote(server)} names another authorization server than before: ${quote(is)}, not ${quote(was)}`;
  onProgress?.({ about: "login", text: `${names}; clients and tokens of the old one are not sent to the new one` });
}

/**
 * Rejects an issuer that may steal the logins of another one (mix-up, RFC 9700 section 4.4): its metadata name the
 * authorization endpoint of an honest issuer, and its own token endpoint gets the code and the verifier. A browser
 * login is safe if both endpoints have one origin, or if the callback names its issuer (RFC 9207). A device login has
 * no callback, so both endpoints must have one origin. Everything else needs the user's consent.
 *
 * @returns the context of the login, in which a consent of the user is one of the overrides
 * @throws `AgentAuthError` `bad_server_metadata` without consent, `timeout` if the user does not answer
 */
async function checkEndpointOrigins(
  context: LoginContext,
  { server, issuer }: Discovered,
  { flow, method, signal }: LoginPlan,
): Promise<LoginContext> {
  const first = foreignFirstEndpoint(issuer, flow);
  if (first === undefined) return context;
  if (overridesFor(issuer, context).includes("allowCrossOriginEndpoints")) return context;
  const prompt = {
    resource: server,
    issuer: issuer.issuer,
    authorizationEndpoint: first.address,
    tokenEndpoint: issuer.tokenEndpoint,
  };
  const deadline = followSignal(signal, context.loginTimeoutMs, () =>
    timeoutError(server, context.loginTimeoutMs / 1000),
  );
  try {
    const confirming = method?.confirmEndpoints?.({ ...prompt, signal: deadline.signal });
    if (confirming && (await untilAborted(confirming, deadline.signal)) === true)
      return { ...context, overrides: { ...context.overrides, allowCrossOriginEndpoints: true } };
  } finally {
    deadline.release();
  }
  const value = issuer.tokenEndpoint;
  const rule = `must be at ${new URL(first.address).origin}, the origin of its ${first.field}${first.unless} (RFC 9700 section 4.4)`;
  const override = "allowCrossOriginEndpoints";
  throw refusalError("bad_server_metadata", { field: "token_endpoint", value, from: issuer.url, rule, override });
}

/** Checks that the pre-registered client of a login belongs to the issuer, before any of its data is sent. */
async function checkClientIssuer(
  context: LoginContext,
  { server, issuer: { issuer } }: Discovered,
  signal: AbortSignal,
): Promise<void> {
  const { preRegistered: client } = context;
  if (client === undefined) return;
  await holdToIssuer(context, {
    client,
    issuer,
    server,
    credential: credentialOf(client),
    isInteractive: true,
    signal,
  });
}
