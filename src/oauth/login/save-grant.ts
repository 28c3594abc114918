import { AgentAuthError } from "../../errors.js";
import { quote } from "../../redact.js";
import { bindUsedClient } from "../client/issuer-binding.js";
import { type Grant, type TokenAnswer, tokensOf } from "../model/grant.js";
import type { Reservation } from "../model/grant-store.js";
import { listsExchange } from "../model/metadata.js";
import { scopesBeyond } from "../model/scope.js";
import { verifyIdToken } from "../token/id-token.js";
import { asksForConsent } from "./authorization.js";
import type { LoginContext } from "./login-context.js";
import type { PreparedLogin } from "./prepared-login.js";

/** The grant of a login from the answer of the token endpoint. */
export function grantOf(
  context: LoginContext,
  login: Omit<PreparedLogin, "pending" | "account" | "addedScope"> & Partial<Pick<PreparedLogin, "pending">>,
  answer: TokenAnswer,
): Grant {
  const { server, issuer, client, scope, resource, overrides, acceptedTokenType, proofKey, pending } = login;
  const isTrial = pending !== undefined && scope.includes("offline_access") && !asksForConsent(pending);
  const requestedScope = scope.length > 0 ? scope.join(" ") : undefined;
  return {
    profile: context.profile,
    server,
    account: context.loginHint,
    resource,
    issuer: issuer.issuer,
    namedIssuer: issuer.namedIssuer,
    endpoints: {
      token: issuer.tokenEndpoint,
      introspection: issuer.introspectionEndpoint,
      revocation: issuer.revocationEndpoint,
      endSession: issuer.endSessionEndpoint,
      jwks: issuer.jwksUri,
    },
    client,
    requestedScope,
    overrides,
    acceptedTokenType,
    authorizationParams: login.authorizationParams,
    needsConsent: isTrial ? answer.refreshToken === undefined : login.needsConsent,
    exchanges: listsExchange(issuer),
    proofKey,
    tokens: tokensOf(answer, requestedScope),
    signedInAt: answer.at,
    refusals: context.refusals,
    generation: 0,
    retired: undefined,
  };
}

const SAVE_TRIES = 5;

/** Stores a new grant in place of any other, and reads it back: a login counts only if its grant is stored. */
export async function saveGrant(context: LoginContext, reservation: Reservation, grant: Grant): Promise<Grant> {
  const { store, onProgress } = context;
  if (context.requiresIdToken)
    await verifyIdToken(grant, { ...context, now: context.clock.epoch(), signal: undefined });
  for (let tries = 0; tries < SAVE_TRIES; tries++) {
    const stored = await store.read(grant);
    const next = { ...grant, generation: (stored?.generation ?? 0) + 1 };
    const target = tries === 0 ? reservation : store;
    if (!(await target.save(next, stored?.generation))) {
      // Another process changed the stored grant, and a plain save needs the reserved disk space.
      await reservation.release();
      continue;
    }
    const saved = await store.read(grant);
    if (saved && saved.generation >= next.generation) {
      await bindUsedClient(context, next);
      const extra = scopesBeyond(grant.requestedScope, grant.tokens.scope);
      if (extra.length > 0) onProgress?.({ about: "login", text: widerScopeWarning(grant, extra) });
      return saved;
    }
    break;
  }
  const message = `the login succeeded, but its tokens could not be stored in ${quote(store.location)}`;
  const hint = "status() lists the stored logins";
  const remedy = { action: "inspect", subject: "logins" } as const;
  throw new AgentAuthError("store_failed", message, { class: "store", hint, remedy });
}

function widerScopeWarning({ issuer, requestedScope }: Grant, extra: readonly string[]): string {
  const what = `the token has more scopes than requested: ${quote(issuer)} granted ${quote(extra.join(" "))}`;
  return `warning: ${what} beside ${quote(requestedScope)} (RFC 6749 section 3.3)`;
}
