import { parseUrl } from "../../http/address.js";
import { describeResource, TOKEN_EXCHANGE_GRANT } from "./configuration.js";
import type { OAuthSettings } from "./issuer-settings.js";
import { type AccessTokenFacts, isMachine } from "./keys.js";
import { type OidcContext, type OidcErrors, type OidcProofs, type OidcProvider, paramOf } from "./oidc.js";

const ACCESS_TOKEN_TYPE = "urn:ietf:params:oauth:token-type:access_token";
const SUBJECT_TYPES: readonly unknown[] = [ACCESS_TOKEN_TYPE, "urn:ietf:params:oauth:token-type:jwt"];
const PARAMETERS = ["subject_token", "subject_token_type", "requested_token_type", "audience", "resource", "scope"];

/** What the exchange needs of the authorization server. */
export interface ExchangeSettings {
  errors: OidcErrors;
  proofs: OidcProofs;
  oauth: OAuthSettings;
  /** The facts of an access token that this server issued, if it is valid. */
  inspect(token: string): Promise<AccessTokenFacts | undefined>;
  hasGrant(id: string): boolean;
}

/**
 * Adds the token exchange grant (RFC 8693): an access token of this server for another one, with the same subject, for
 * another audience, and with at most the same scopes. A client's own token is exchanged for that client alone.
 */
export function addTokenExchange(provider: OidcProvider, settings: ExchangeSettings): void {
  const { errors, proofs } = settings;
  provider.registerGrantType(
    TOKEN_EXCHANGE_GRANT,
    async (ctx) => {
      const proof = await proofs.read(provider, ctx);
      const subject = await readSubject(ctx, settings);
      const audience = readAudience(ctx, settings);
      const scope = narrowScope(subject.scopes, paramOf(ctx.oidc.params, "scope"), errors);
      const { client } = ctx.oidc;
      const { grantId, subject: accountId } = subject;
      const token =
        grantId === undefined
          ? new provider.ClientCredentials({ client })
          : new provider.AccessToken({ accountId, client, grantId, gty: "token_exchange" });
      token.resourceServer = new provider.ResourceServer(audience, describeResource(settings.oauth, audience, scope));
      token.scope = scope;
      await proofs.bind(provider, ctx, proof, token);
      ctx.oidc.entity(grantId === undefined ? "ClientCredentials" : "AccessToken", token);
      ctx.body = {
        access_token: await token.save(),
        issued_token_type: ACCESS_TOKEN_TYPE,
        token_type: token.tokenType,
        expires_in: token.expiration,
        ...(scope !== "" && { scope }),
      };
    },
    PARAMETERS,
  );
}

async function readSubject(ctx: OidcContext, { errors, inspect, hasGrant }: ExchangeSettings) {
  const token = paramOf(ctx.oidc.params, "subject_token");
  if (token === undefined) throw new errors.InvalidRequest("subject_token is required");
  if (!SUBJECT_TYPES.includes(paramOf(ctx.oidc.params, "subject_token_type"))) {
    throw new errors.InvalidRequest(`subject_token_type must be ${ACCESS_TOKEN_TYPE}`);
  }
  const requested = paramOf(ctx.oidc.params, "requested_token_type");
  if (requested !== undefined && requested !== ACCESS_TOKEN_TYPE) {
    throw new errors.InvalidRequest(`requested_token_type must be ${ACCESS_TOKEN_TYPE}`);
  }
  const subject = await inspect(token);
  const isOwn = subject && isMachine(subject) && subject.clientId === ctx.oidc.client.clientId;
  if (!isOwn && (subject?.grantId === undefined || !hasGrant(subject.grantId))) {
    throw new errors.InvalidRequest("subject_token is not a valid access token of this server");
  }
  return subject;
}

function readAudience(ctx: OidcContext, { errors, oauth }: ExchangeSettings): string {
  const [audience, resource] = [paramOf(ctx.oidc.params, "audience"), paramOf(ctx.oidc.params, "resource")];
  if (audience !== undefined && resource !== undefined && audience !== resource) {
    throw new errors.InvalidTarget("audience and resource must name the same target");
  }
  if (resource !== undefined && (parseUrl(resource) === undefined || resource.includes("#"))) {
    throw new errors.InvalidTarget("resource must be an absolute URI without a fragment");
  }
  const target = resource ?? audience;
  if (target === undefined) throw new errors.InvalidTarget("audience or resource is required");
  if (oauth.exchangeAudiences?.includes(target) === false)
    throw new errors.InvalidTarget("the target is not an allowed audience");
  return target;
}

function narrowScope(granted: readonly string[], requested: string | undefined, errors: OidcErrors): string {
  if (requested === undefined) return granted.join(" ");
  const extra = requested.split(" ").filter((scope) => !granted.includes(scope));
  if (extra.length > 0) throw new errors.InvalidScope("the subject token does not have this scope", extra.join(" "));
  return requested;
}
