import * as oauth from "oauth4webapi";
import { AgentAuthError } from "../../errors.js";
import { isJsonObject } from "../../http/strict-json.js";
import { Redactor } from "../../redact.js";
import type { ClientKey } from "../client/client-auth.js";
import type { OAuthHttp } from "../http/http.js";
import type { Grant } from "../model/grant.js";
import { sendAuthenticated } from "./token.js";

/** An introspection response (RFC 7662 section 2.2). */
export type Introspection = {
  /** Whether the token is active. */
  active: boolean;
} & Record<string, unknown>;

/**
 * Introspects the access token of a grant at its issuer. Secrets of the grant are masked in the response, which is made
 * to be shown.
 *
 * @throws `AgentAuthError` `no_introspection` if the issuer has no endpoint for it
 */
export async function introspect(
  grant: Grant,
  http: OAuthHttp,
  signal: AbortSignal | undefined,
  privateKey?: ClientKey,
): Promise<Introspection> {
  const url = grant.endpoints.introspection;
  if (url === undefined)
    throw new AgentAuthError("no_introspection", `${grant.issuer} has no introspection_endpoint`, { class: "remote" });
  const { issuer, client: record } = grant;
  const call = { http, issuer, tokenEndpoint: url, client: record, privateKey, signal };
  const token = grant.tokens.accessToken.reveal();
  return sendAuthenticated(call, async ({ as, client, auth, options }) => {
    const server = { ...as, introspection_endpoint: url };
    const response = await oauth.introspectionRequest(server, client, auth, token, options);
    const parsed = await oauth.processIntrospectionResponse(server, client, response);
    return redactValue(parsed, collectSecrets(grant)) as Introspection;
  });
}

function collectSecrets({ tokens, client }: Grant): Redactor {
  const redactor = new Redactor();
  const secrets = [tokens.accessToken, tokens.refreshToken, tokens.idToken, client.clientSecret];
  for (const secret of secrets) if (secret !== undefined) redactor.add(secret.reveal());
  return redactor;
}

/** The value with every string in it redacted; the strict parser limits its depth. */
function redactValue(value: unknown, redactor: Redactor): unknown {
  if (typeof value === "string") return redactor.redactKnown(value);
  if (Array.isArray(value)) return value.map((item) => redactValue(item, redactor));
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, redactValue(item, redactor)]));
}
