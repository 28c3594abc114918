import { openJwt } from "./keys.js";
import type { Machines } from "./machine.js";
import type { OidcContext, OidcErrors, OidcProofs, OidcProvider, ResourceServerInfo } from "./oidc.js";

/** RFC 7523, section 2.1. */
export const JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer";

/** The type of an assertion by which an identity provider vouches for a person. */
export const ID_JAG_TYP = "oauth-id-jag+jwt";

/** What the grant needs of the authorization server. */
export interface JwtBearerSettings {
  errors: OidcErrors;
  proofs: OidcProofs;
  machines: Machines;
  issuer: string;
  /** The resources that tokens are issued for; the first where a request names none. */
  resources: readonly [string, ...string[]];
  describeResource(audience: string, scope: string): ResourceServerInfo;
}

/** Adds the JWT bearer grant (RFC 7523): a token for whom a trusted platform or the identity provider speaks for. */
export function addJwtBearer(provider: OidcProvider, settings: JwtBearerSettings): void {
  provider.registerGrantType(
    JWT_BEARER,
    async (ctx) => {
      const { client } = ctx.oidc;
      // First of all: a client that is to send a nonce comes again with the same assertion, which may be good for once.
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
  const asked = text(ctx, "resource") ?? resources[0];
  if (!resources.includes(asked)) throw new errors.InvalidTarget("the resource is none of this server's");
  return asked;
}

interface Vouched {
  accountId: string;
  /** The scopes that it is limited to, where it is. */
  allowed?: string;
}

/** Who the assertion speaks for, by the rules of RFC 7523 section 3. */
function readAssertion(ctx: OidcContext, resource: string, { errors, machines, issuer }: JwtBearerSettings): Vouched {
  const assertion = text(ctx, "assertion");
  if (assertion === undefined) throw new errors.InvalidRequest("assertion is required");
  const refuse = (why: string) => new errors.InvalidGrant(why);
  const ofPlatform = openJwt(assertion, machines.key("platform"));
  const { header, claims } = ofPlatform ?? openJwt(assertion, machines.key("idp")) ?? {};
  if (!claims) throw refuse("nobody whom this server trusts has signed the assertion");
  const { iss, sub, aud, exp, jti } = claims;
  if (iss !== (ofPlatform ? machines.platform : machines.idp.issuer)) throw refuse("iss is another than the signer");
  if (typeof exp !== "number" || exp <= machines.now()) throw refuse("the assertion has ended");
  if (aud !== issuer) throw refuse("the assertion is for somebody else");
  if (typeof sub !== "string" || typeof jti !== "string") throw refuse("sub or jti is missing");
  if (ofPlatform) return { accountId: sub };
  // An id token is no assertion, although the same key signs it.
  if (header?.["typ"] !== ID_JAG_TYP) throw refuse("the JWT is no ID-JAG");
  if (claims["client_id"] !== ctx.oidc.client.clientId) throw refuse("the ID-JAG is for another client");
  if (claims["resource"] !== resource) throw refuse("the ID-JAG is for another resource");
  if (!machines.useOnce(jti, exp)) throw refuse("the ID-JAG was used before");
  return { accountId: sub, ...(typeof claims["scope"] === "string" && { allowed: claims["scope"] }) };
}

function readScope(ctx: OidcContext, allowed: string | undefined, errors: OidcErrors): string {
  const asked = text(ctx, "scope") ?? "";
  if (allowed === undefined) return asked;
  const extra = asked.split(" ").filter((scope) => scope !== "" && !allowed.split(" ").includes(scope));
  if (extra.length > 0) throw new errors.InvalidScope("the ID-JAG does not allow this scope", extra.join(" "));
  return asked === "" ? allowed : asked;
}

function text(ctx: OidcContext, name: string): string | undefined {
  const value = ctx.oidc.params[name];
  return typeof value === "string" && value !== "" ? value : undefined;
}
