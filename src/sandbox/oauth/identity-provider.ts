import type { OAuthSettings } from "./issuer-settings.js";
import { ID_JAG_TYP } from "./jwt-bearer.js";
import { openJwt, SIGNING_ALG, signJwt } from "./keys.js";
import type { Machines } from "./machine.js";
import { type OidcContext, type OidcErrors, type OidcProvider, paramOf } from "./oidc.js";
import { TOKEN_EXCHANGE_GRANT } from "./token-exchange.js";

const TYPE = "urn:ietf:params:oauth:token-type:";
const ID_JAG = `${TYPE}id-jag`;
const DEVICE_CODE = "urn:ietf:params:oauth:grant-type:device_code";
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
  /** Whether an address is the issuer of one. */
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
