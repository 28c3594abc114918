import { splitScope } from "../../oauth/model/scope.js";
import { openJwt } from "./keys.js";
import type { Machines } from "./machine.js";
import {
  type OidcContext,
  type OidcErrors,
  type OidcProofs,
  type OidcProvider,
  paramOf,
  type ResourceServerInfo,
} from "./oidc.js";

/** RFC 7523, section 2.1. */
export const JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer";

/** The `typ` of an identity assertion (ID-JAG). */
export const ID_JAG_TYP = "oauth-id-jag+jwt";

/** What the grant needs of the authorization server. */
export interface JwtBearerSettings {
  errors: OidcErrors;
  proofs: OidcProofs;
  machines: Machines;
  issuer: string;
  /** The resources of the tokens; the first is the default. */
  resources: readonly [string, ...string[]];
  describeResource(audience: string, scope: string): ResourceServerInfo;
}

/** Adds the JWT bearer grant (RFC 7523) for assertions of the trusted platform and of the identity provider. */
export function addJwtBearer(provider: OidcProvider, settings: JwtBearerSettings): void {
  provider.registerGrantType(
    JWT_BEARER,
    async (ctx) => {
      const { client } = ctx.oidc;
      // First: a client without a nonce repeats the request with the same assertion, which may be valid only once.
      const proof = await settings.proofs.read(provider, ctx);
      const resource = readResource(ctx, settings);
      const { accountId, allowed } = readAssertion(ctx, resource, settings);
      const scope = readScope(ctx, allowed, settings.errors);
      const grant = new provider.Grant({ accountId, clientId: client.clientId });
      if (scope !== "") grant.addResourceScope(resource, scope);
      const token = new provider.AccessToken({ accountId, client, grantId: await grant.save(), gty: "jwt_bearer" });
      token.resourceServer = new provider.ResourceServer(resource, settings.describeResource(resource, scope));
      token.scope = scope;
      await settings.proofs.bind(provider, ctx, proof, token);
      ctx.oidc.entity("AccessToken", token);
      ctx.body = {
        access_token: await token.save(),
        token_type: token.tokenType,
        expires_in: token.expiration,
        ...(scope !== "" && { scope }),
      };
    },
    ["assertion", "scope", "resource"],
  );
}

function readResource(ctx: OidcContext, { resources, errors }: JwtBearerSettings): string {
  const resource = paramOf(ctx.oidc.params, "resource") ?? resources[0];
  if (!resources.includes(resource)) throw new errors.InvalidTarget("the resource is not one of this server");
  return resource;
}

/** Validates the assertion by the rules of RFC 7523 section 3; without `allowed` it allows every scope. */
function readAssertion(
  ctx: OidcContext,
  resource: string,
  { errors, machines, issuer }: JwtBearerSettings,
): { accountId: string; allowed?: string } {
  const assertion = paramOf(ctx.oidc.params, "assertion");
  if (assertion === undefined) throw new errors.InvalidRequest("assertion is required");
  const refuse = (why: string) => new errors.InvalidGrant(why);
  const ofPlatform = openJwt(assertion, machines.key("platform"));
  const { header, claims } = ofPlatform ?? openJwt(assertion, machines.key("idp")) ?? {};
  if (!claims) throw refuse("the assertion is not signed by a trusted issuer");
  const { iss, sub, aud, exp, jti } = claims;
  if (iss !== (ofPlatform ? machines.platform : machines.idp.issuer))
    throw refuse("iss is not the issuer of the signing key");
  if (typeof exp !== "number" || exp <= machines.now()) throw refuse("the assertion is expired");
  if (aud !== issuer) throw refuse("aud is not this issuer");
  if (typeof sub !== "string" || typeof jti !== "string") throw refuse("sub or jti is missing");
  if (ofPlatform) return { accountId: sub };
  // An id token is not an assertion, although the same key signs it.
  if (header?.["typ"] !== ID_JAG_TYP) throw refuse("typ is not oauth-id-jag+jwt");
  if (claims["client_id"] !== ctx.oidc.client.clientId) throw refuse("client_id is another client");
  // The identity provider may leave it out.
  if (claims["resource"] !== undefined && claims["resource"] !== resource) throw refuse("resource is another resource");
  if (!machines.useOnce(jti, exp)) throw refuse("the ID-JAG was used already");
  return { accountId: sub, ...(typeof claims["scope"] === "string" && { allowed: claims["scope"] }) };
}

function readScope(ctx: OidcContext, allowed: string | undefined, errors: OidcErrors): string {
  const requested = paramOf(ctx.oidc.params, "scope") ?? "";
  if (allowed === undefined) return requested;
  const extra = splitScope(requested).filter((scope) => !splitScope(allowed).includes(scope));
  if (extra.length > 0) throw new errors.InvalidScope("the ID-JAG does not allow this scope", extra.join(" "));
  return requested === "" ? allowed : requested;
}
