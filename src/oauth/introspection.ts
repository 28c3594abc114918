import * as oauth from "oauth4webapi";
import { AgentAuthError } from "../errors.js";
import type { Grant } from "./grant.js";
import type { OAuthHttp } from "./http.js";
import { prepare, told } from "./token.js";

/** What the issuer says of a token (RFC 7662 section 2.2). */
export type Introspection = { active: boolean } & Record<string, unknown>;

/**
 * Asks the issuer of a grant about its access token.
 *
 * @throws `AgentAuthError` `no_introspection` where the issuer has no endpoint for it
 */
export async function introspect(
  grant: Grant,
  http: OAuthHttp,
  signal: AbortSignal | undefined,
): Promise<Introspection> {
  const url = grant.endpoints.introspection;
  if (url === undefined) {
    throw new AgentAuthError("no_introspection", `${grant.issuer} has no introspection_endpoint`, { class: "remote" });
  }
  const { as, client, auth, options } = prepare({ http, issuer: grant.issuer, client: grant.client, signal });
  const server = { ...as, introspection_endpoint: url };
  const token = grant.tokens.accessToken.reveal();
  const ask = async () => {
    const response = await oauth.introspectionRequest(server, client, auth, token, options);
    return (await oauth.processIntrospectionResponse(server, client, response)) as Introspection;
  };
  return told({ tokenEndpoint: url, client: grant.client }, ask, [token]);
}
