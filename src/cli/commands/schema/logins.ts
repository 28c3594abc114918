/** The schemas of what commands about logins and tokens print. */

import { GRANT_FLAGS, GRANT_STRATEGIES } from "../../../oauth/machine/grant-strategies.js";
import { address, flag, integer, type JsonSchema, listOf, oneOf, orNull, record, text, time } from "./json-schema.js";

const GRANTS_ABOUT = Object.values(GRANT_STRATEGIES)
  .map(({ flag: name, about }) => `${name}: ${about}`)
  .join("; ");

const LOGIN = {
  profile: text("the profile that it belongs to"),
  server: address("the MCP server"),
  account: orNull(text("the account that the login was asked for; null when none was named")),
  grant: oneOf(["sign-in", ...GRANT_FLAGS], `sign-in: a login of a user; ${GRANTS_ABOUT}`),
  token_type: oneOf(["Bearer", "DPoP"], "DPoP: bound to a key that is kept with it (RFC 9449)"),
  resource: text("the resource that the token is for, as it was sent"),
  issuer: address("the authorization server"),
  client_id: text("the client that the issuer knows"),
  scope: orNull(text("the scopes, separated by blanks; null if the issuer did not say")),
  expires_at: orNull(time("the end of the access token; null if the issuer did not say")),
  signed_in_at: time("when a person signed in"),
  state: oneOf(["valid", "expired", "over"], "over: only a new sign-in helps"),
  refreshable: flag("whether the token can be renewed without a person"),
  refresh_lost_at: orNull(
    time("when the answer to the last refresh was lost on the way; the token is used until it expires"),
  ),
  reason: orNull(text("why it is over")),
  stored_in: text("where it is kept"),
};

const STATUS = record(LOGIN);

const TOKEN = record({
  access_token: text("the token; a secret"),
  token_type: oneOf(["Bearer", "DPoP"], "DPoP: good only with a proof of its key at every request (RFC 9449)"),
  expires_at: orNull(time("its end; null if the issuer did not say")),
  expires_in: orNull(integer("seconds until its end, when it was printed")),
  scope: orNull(text("its scopes, separated by blanks; null if the issuer did not say")),
  resource: text("the resource that it is for"),
  issuer: address("the authorization server"),
});

const EXCHANGED = record({
  access_token: text("the token, whatever its type; a secret"),
  issued_token_type: text("what it is (RFC 8693 section 3)"),
  token_type: text("how it is used: Bearer, or N_A for one that is no access token"),
  expires_at: orNull(time("its end; null if the issuer did not say")),
  expires_in: orNull(integer("seconds until its end, when it was printed")),
  scope: orNull(text("its scopes, separated by blanks; null if the issuer did not say")),
  issuer: address("the authorization server"),
});

const LOGIN_BEGUN = record({
  login_id: text("for login --wait"),
  url: address("where a person signs in"),
  expires_at: time("until when that is possible"),
  finish: text("the command that finishes the login"),
});

const LOGOUT = record({
  server: address("the MCP server"),
  profile: text("the profile"),
  account: orNull(text("the account that the login was for")),
  removed: flag("whether a login was kept here and is gone"),
  told: orNull(flag("whether the issuer revoked it; null if it has no revocation endpoint, or no request was sent")),
  error: orNull(text("why it is still stored, or why the revocation failed")),
});

const STEP = record(
  {
    step: text("the step of the discovery"),
    method: text("the HTTP method"),
    url: address("what was asked"),
    status: integer("the HTTP status; absent where there was no answer"),
    used: flag("whether the answer was used"),
    why: text("why, or why not"),
  },
  { optional: ["status"] },
);

const strings = (description: string) => listOf({ type: "string" }, description);

const RESOURCE = record(
  {
    resource: text("the resource, as it is sent"),
    authorizationServers: strings("its issuers, in its order"),
    scopesSupported: strings("the scopes that it names"),
    dpopRequired: flag("whether it takes no tokens but those that are bound to a key (RFC 9449)"),
    url: address("where its metadata was found"),
  },
  { optional: ["scopesSupported"], description: "RFC 9728" },
);

const ISSUER_ALWAYS = {
  issuer: address("its identifier"),
  authorizationEndpoint: address("where a person signs in"),
  tokenEndpoint: address("where tokens come from"),
  promisesIss: flag("whether it names itself in every authorization answer (RFC 9207)"),
  takesClientIdDocuments: flag("whether a client id may be the address of a client's metadata"),
  url: address("where its metadata was found"),
};
const ISSUER_SOMETIMES = {
  registrationEndpoint: address("RFC 7591"),
  introspectionEndpoint: address("RFC 7662"),
  revocationEndpoint: address("RFC 7009"),
  endSessionEndpoint: address("OpenID Connect RP-initiated logout"),
  deviceAuthorizationEndpoint: address("RFC 8628"),
  jwksUri: address("its keys"),
  tokenEndpointSigningAlgorithms: strings("what client assertions may be signed with"),
  dpopSigningAlgorithms: strings("what proofs may be signed with that tokens are bound by (RFC 9449)"),
  scopesSupported: strings("the scopes that it names"),
  grantTypesSupported: strings("the grants that it names"),
  tokenEndpointAuthMethods: strings("how clients may prove who they are"),
};
const ISSUER = record(
  { ...ISSUER_ALWAYS, ...ISSUER_SOMETIMES },
  { optional: Object.keys(ISSUER_SOMETIMES), description: "RFC 8414" },
);

const DISCOVER = record(
  {
    server: address("the MCP server"),
    resource: RESOURCE,
    issuer: ISSUER,
    trace: listOf(STEP, "every request, in order"),
    error: record(
      {
        code: text("the error's code"),
        class: text("what kind of error it is, which decides the exit code"),
        message: text("what happened"),
        hint: text("what helps"),
      },
      { optional: ["hint"], description: "why no issuer was found; absent where one was" },
    ),
  },
  { optional: ["resource", "issuer", "error"] },
);

const INTROSPECTION: JsonSchema = {
  ...record({ active: flag("whether the issuer takes the token") }),
  description: "RFC 7662 section 2.2; what else the issuer says stands beside it",
  additionalProperties: true,
};

const TOOL: JsonSchema = {
  ...record(
    {
      name: text("its name"),
      description: text("what it does"),
      inputSchema: { type: "object", additionalProperties: true, description: "what it takes, a JSON Schema" },
      title: text("its name for people"),
      outputSchema: { type: "object", additionalProperties: true, description: "what it gives, a JSON Schema" },
      annotations: { type: "object", additionalProperties: true, description: "what its server says of its effects" },
      icons: listOf({ type: "object", additionalProperties: true }, "pictures of it"),
      execution: { type: "object", additionalProperties: true, description: "how it may be called" },
      _meta: { type: "object", additionalProperties: true, description: "whatever else its server says" },
    },
    { optional: ["description", "title", "outputSchema", "annotations", "icons", "execution", "_meta"] },
  ),
  description: "as the server describes it",
  additionalProperties: true,
};

/** By the names of the types. */
export const LOGIN_SCHEMAS = {
  token: TOKEN,
  exchanged: EXCHANGED,
  login: record({ signed_in: { type: "boolean", const: true }, ...LOGIN }),
  "login-begun": LOGIN_BEGUN,
  status: STATUS,
  logout: LOGOUT,
  discover: DISCOVER,
  introspection: INTROSPECTION,
  tool: TOOL,
} as const;
