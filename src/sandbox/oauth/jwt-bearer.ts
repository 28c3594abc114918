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
      const { accountId, resource, scope } = readAssertion(ctx, settings);
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

/** Whom a token is for. */
interface Asserted {
  accountId: string;
  resource: string;
  scope: string;
}

/**
 * Validates the assertion by the rules of RFC 7523 section 3, and an ID-JAG by those of its draft (section 4.4.1). Each is
 * taken once, and not used up by a request that is refused for another reason.
 */
function readAssertion(ctx: OidcContext, { errors, machines, issuer, resources }: JwtBearerSettings): Asserted {
  const assertion = paramOf(ctx.oidc.params, "assertion");
  if (assertion === undefined) throw new errors.InvalidRequest("assertion is required");
  const refuse = (why: string) => new errors.InvalidGrant(why);
  const ofPlatform = openJwt(assertion, machines.key("platform"));
  const { header, claims } = ofPlatform ?? openJwt(assertion, machines.key("idp")) ?? {};
  if (!claims) throw refuse("the assertion is not signed by a trusted issuer");
  const { iss, sub, exp, nbf, jti } = claims;
  // One audience: another server in it could use the assertion too.
  const [aud, ...others] = [claims["aud"]].flat();
  if (iss !== (ofPlatform ? machines.platform : machines.idp.issuer))
    throw refuse("iss is not the issuer of the signing key");
  if (typeof exp !== "number" || exp <= machines.now()) throw refuse("the assertion is expired");
  if (typeof nbf === "number" && nbf > machines.now()) throw refuse("the assertion is not valid yet (nbf)");
  if (aud !== issuer || others.length > 0) throw refuse("aud is not this issuer alone");
  if (typeof sub !== "string" || typeof jti !== "string") throw refuse("sub or jti is missing");
  // An id token is not an assertion, although the same key signs it.
  if (!ofPlatform && header?.["typ"] !== ID_JAG_TYP) throw refuse("typ is not oauth-id-jag+jwt");
  if (!ofPlatform && claims["client_id"] !== ctx.oidc.client.clientId) throw refuse("client_id is another client");
  if (!ofPlatform && typeof claims["iat"] !== "number") throw refuse("iat is missing");
  // The identity provider may leave it out.
  const named = ofPlatform ? undefined : claims["resource"];
  const resource = paramOf(ctx.oidc.params, "resource") ?? (typeof named === "string" ? named : resources[0]);
  if (!resources.includes(resource)) throw new errors.InvalidTarget("the resource is not one of this server");
  if (named !== undefined && named !== resource) throw refuse("resource is another resource");
  const scope = readScope(ctx, ofPlatform ? undefined : claims["scope"], errors);
  if (!machines.useOnce(`${iss} ${jti}`, exp)) throw refuse("the assertion was used already (jti)");
  return { accountId: sub, resource, scope };
}

/** The requested scopes, which an ID-JAG must allow; without a request, those that it allows. */
function readScope(ctx: OidcContext, allowed: unknown, errors: OidcErrors): string {
  const requested = paramOf(ctx.oidc.params, "scope") ?? "";
  if (typeof allowed !== "string") return requested;
  const extra = splitScope(requested).filter((scope) => !splitScope(allowed).includes(scope));
  if (extra.length > 0) throw new errors.InvalidScope("the ID-JAG does not allow this scope", extra.join(" "));
  return requested === "" ? allowed : requested;
}
