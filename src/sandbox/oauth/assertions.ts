import { splitScope } from "../../oauth/model/scope.js";
import { DEVICE_CODE, describeResource, JWT_BEARER, TOKEN_EXCHANGE_GRANT } from "./configuration.js";
import type { OAuthSettings } from "./issuer-settings.js";
import { openJwt, SIGNING_ALG, signJwt } from "./keys.js";
import type { Machines } from "./machine.js";
import { type OidcContext, type OidcErrors, type OidcProofs, type OidcProvider, paramOf } from "./oidc.js";

const ID_JAG_TYP = "oauth-id-jag+jwt";

/** What the grant needs of the authorization server. */
export interface JwtBearerSettings {
  errors: OidcErrors;
  proofs: OidcProofs;
  oauth: OAuthSettings;
  machines: Machines;
  issuer: string;
  /** The resources of the tokens; the first is the default. */
  resources: readonly [string, ...string[]];
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
      token.resourceServer = new provider.ResourceServer(resource, describeResource(settings.oauth, resource, scope));
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

/**
 * Validates the assertion by the rules of RFC 7523 section 3, and an ID-JAG by those of its draft (section 4.4.1). Each is
 * taken once, and not used up by a request that is refused for another reason. Returns whom and what a token is for.
 */
function readAssertion(ctx: OidcContext, { errors, machines, issuer, resources }: JwtBearerSettings) {
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

const TYPE = "urn:ietf:params:oauth:token-type:";
const ID_JAG = `${TYPE}id-jag`;
const LIFE_S = 300;

/** The clients of the identity provider, in the form of oidc-provider. */
export function idpClients({ idp }: Machines, { deviceFlow }: Pick<OAuthSettings, "deviceFlow">): object[] {
  const common = {
    application_type: "native",
    redirect_uris: ["http://127.0.0.1/callback", "http://localhost/callback"],
    response_types: ["code"],
    grant_types: ["authorization_code", "refresh_token", TOKEN_EXCHANGE_GRANT, ...(deviceFlow ? [DEVICE_CODE] : [])],
    id_token_signed_response_alg: SIGNING_ALG,
  };
  return [
    { ...common, client_id: idp.nativeClient.clientId, token_endpoint_auth_method: "none" },
    {
      ...common,
      client_id: idp.clientId,
      client_secret: idp.clientSecret,
      token_endpoint_auth_method: "client_secret_basic",
    },
  ];
}

/** The authorization servers of the sandbox. */
export interface IssuerList {
  isIssuer(issuer: string): boolean;
}

/** What the grant needs of the identity provider. */
interface IdJagSettings {
  errors: OidcErrors;
  machines: Machines;
  servers: IssuerList;
}

/**
 * Adds the exchange of an id token, or of a refresh token, for an identity assertion (ID-JAG) for an authorization server
 * of the sandbox (RFC 8693, identity assertion authorization grant).
 */
export function addIdJag(provider: OidcProvider, settings: IdJagSettings): void {
  const { machines } = settings;
  provider.registerGrantType(
    TOKEN_EXCHANGE_GRANT,
    async (ctx) => {
      const { params, client } = ctx.oidc;
      const sub = await readSubject(provider, ctx, settings);
      const aud = readAudience(ctx, settings);
      const resource = paramOf(params, "resource");
      const scope = machines.allowedScopes(aud, paramOf(params, "scope"));
      const assertion = {
        iss: machines.idp.issuer,
        sub,
        aud,
        client_id: machines.clientAtServers(client.clientId),
        ...(resource !== undefined && { resource }),
        ...(scope !== undefined && { scope }),
        ...machines.times(LIFE_S),
      };
      ctx.body = {
        access_token: signJwt(machines.key("idp"), ID_JAG_TYP, assertion),
        issued_token_type: ID_JAG,
        token_type: "N_A",
        expires_in: LIFE_S,
        ...(scope !== undefined && { scope }),
      };
    },
    ["subject_token", "subject_token_type", "requested_token_type", "audience", "resource", "scope"],
  );
}

async function readSubject(provider: OidcProvider, ctx: OidcContext, settings: IdJagSettings): Promise<string> {
  const { errors, machines } = settings;
  const { params, client } = ctx.oidc;
  const [token = "", type] = [paramOf(params, "subject_token"), paramOf(params, "subject_token_type")];
  if (paramOf(params, "requested_token_type") !== ID_JAG) throw new errors.InvalidRequest("only an ID-JAG is issued");
  if (type === `${TYPE}refresh_token`) {
    const found = await provider.RefreshToken.find(token);
    if (found?.isValid && found.clientId === client.clientId) return found.accountId;
    throw new errors.InvalidGrant("the refresh token is used, expired, or not of this client");
  }
  if (type !== `${TYPE}id_token`) throw new errors.InvalidRequest("only an id token or a refresh token is exchanged");
  const { header, claims } = openJwt(token, machines.key("idp")) ?? {};
  const isIdToken = header?.["typ"] !== ID_JAG_TYP && claims?.["aud"] === client.clientId;
  if (!isIdToken || Number(claims["exp"]) <= machines.now())
    throw new errors.InvalidGrant("the id token is expired, or not for this client");
  return String(claims["sub"]);
}

function readAudience(ctx: OidcContext, { errors, machines, servers }: IdJagSettings): string {
  const audience = paramOf(ctx.oidc.params, "audience") ?? "";
  if (!servers.isIssuer(audience)) throw new errors.InvalidTarget("the audience is not an issuer of this sandbox");
  if (machines.isDenied(audience))
    throw new errors.AccessDenied("the policy of the company does not allow this server");
  return audience;
}
