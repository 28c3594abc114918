import { describe, expect, it } from "vitest";
import type { AgentAuthError } from "../../../src/errors.js";
import {
  checkIssuerMetadata,
  checkServerMetadata,
  type ServerDiscovery,
} from "../../../src/oauth/discovery/server-metadata.js";

const ISSUER = "https://as.example/pool";
const URL_OF = `${ISSUER}/.well-known/oauth-authorization-server`;
const GOOD = {
  issuer: ISSUER,
  authorization_endpoint: `${ISSUER}/authorize`,
  token_endpoint: `${ISSUER}/token`,
  code_challenge_methods_supported: ["S256"],
};

function discoveryOf(over: Partial<ServerDiscovery> = {}, policy: object = {}): ServerDiscovery {
  return {
    http: { document: () => Promise.reject(new Error("not read")) },
    issuer: ISSUER,
    policy: { bounds: () => true, missingPkceMetadata: false, sameOriginEndpoints: false, ...policy },
    trace: () => {},
    signal: undefined,
    ...over,
  };
}

type Check = typeof checkServerMetadata | typeof checkIssuerMetadata;

function refusalOf(check: Check, members: object, discovery = discoveryOf()): AgentAuthError {
  try {
    check({ ...GOOD, ...members }, URL_OF, discovery);
  } catch (error) {
    return error as AgentAuthError;
  }
  throw new Error("expected a refusal");
}

/** The error for a member. */
const details = (field: string, shown: string, rule: string, code = "bad_server_metadata") => ({
  code,
  class: "refused",
  message: `${field}${shown && ` ${shown}`} (from "${URL_OF}") ${shown ? rule : `is missing, and ${rule}`}`,
});
const MISSING = "";

describe("the metadata of an issuer", () => {
  it("are read with every member that is used", () => {
    const lists = {
      scopes_supported: ["a", "offline_access"],
      grant_types_supported: ["authorization_code"],
      authorization_grant_profiles_supported: ["p"],
      token_endpoint_auth_methods_supported: ["none"],
      token_endpoint_auth_signing_alg_values_supported: ["RS256"],
      dpop_signing_alg_values_supported: ["ES256"],
      response_types_supported: ["code"],
    };
    const document = {
      ...GOOD,
      ...lists,
      registration_endpoint: `${ISSUER}/register`,
      introspection_endpoint: `${ISSUER}/introspect`,
      revocation_endpoint: `${ISSUER}/revoke`,
      end_session_endpoint: `${ISSUER}/end`,
      device_authorization_endpoint: `${ISSUER}/device`,
      jwks_uri: `${ISSUER}/jwks`,
      authorization_response_iss_parameter_supported: true,
      client_id_metadata_document_supported: true,
    };
    const expected = {
      issuer: ISSUER,
      namedIssuer: "https://named.example",
      tokenEndpoint: `${ISSUER}/token`,
      registrationEndpoint: `${ISSUER}/register`,
      introspectionEndpoint: `${ISSUER}/introspect`,
      revocationEndpoint: `${ISSUER}/revoke`,
      endSessionEndpoint: `${ISSUER}/end`,
      deviceAuthorizationEndpoint: `${ISSUER}/device`,
      jwksUri: `${ISSUER}/jwks`,
      scopesSupported: ["offline_access"],
      grantTypesSupported: ["authorization_code"],
      grantProfilesSupported: ["p"],
      tokenEndpointAuthMethods: ["none"],
      tokenEndpointSigningAlgorithms: ["RS256"],
      dpopSigningAlgorithms: ["ES256"],
      promisesIss: true,
      takesClientIdDocuments: true,
      url: URL_OF,
    };
    const discovery = discoveryOf({ namedIssuer: "https://named.example" });
    expect(checkIssuerMetadata(document, URL_OF, discovery)).toEqual(expected);
    const authorizationEndpoint = `${ISSUER}/authorize`;
    expect(checkServerMetadata(document, URL_OF, discovery)).toEqual({ ...expected, authorizationEndpoint });
  });

  it("need no more than this, and promise nothing that is not true", () => {
    const over = {
      authorization_response_iss_parameter_supported: "true",
      client_id_metadata_document_supported: 1,
      scopes_supported: [],
    };
    expect(checkServerMetadata({ ...GOOD, ...over }, URL_OF, discoveryOf())).toMatchObject({
      promisesIss: false,
      takesClientIdDocuments: false,
      scopesSupported: [],
      jwksUri: undefined,
    });
    expect(checkServerMetadata(GOOD, URL_OF, discoveryOf()).scopesSupported).toBeUndefined();
  });

  it.each<[string, unknown, string]>([
    ["scopes_supported", "a b", "must be a list of strings"],
    ["grant_types_supported", [1], "must be a list of strings"],
    ["authorization_grant_profiles_supported", {}, "must be a list of strings"],
    ["token_endpoint_auth_methods_supported", "none", "must be a list of strings"],
    ["token_endpoint_auth_signing_alg_values_supported", "x", "must be a list of strings"],
    ["dpop_signing_alg_values_supported", "x", "must be a list of strings"],
  ])("are refused where %s is %j", (field, value, rule) => {
    const shown = typeof value === "string" ? `"${value}"` : `"${JSON.stringify(value)}"`;
    for (const check of [checkServerMetadata, checkIssuerMetadata])
      expect(refusalOf(check, { [field]: value })).toMatchObject(details(field, shown, rule));
  });

  it.each<[string, object, string, string, string, string?]>([
    [
      "no token endpoint",
      { token_endpoint: undefined },
      "token_endpoint",
      MISSING,
      "is required to get a token (RFC 8414 section 2)",
    ],
    [
      "no authorization endpoint",
      { authorization_endpoint: undefined },
      "authorization_endpoint",
      MISSING,
      "is required for a login (RFC 8414 section 2)",
    ],
    [
      "other response types",
      { response_types_supported: ["token"] },
      "response_types_supported",
      `"${JSON.stringify(["token"])}"`,
      'must include "code"',
    ],
    [
      "other grants",
      { grant_types_supported: ["implicit"] },
      "grant_types_supported",
      `"${JSON.stringify(["implicit"])}"`,
      'must include "authorization_code"',
    ],
    [
      "no PKCE",
      { code_challenge_methods_supported: undefined },
      "code_challenge_methods_supported",
      MISSING,
      'must include "S256", or the authorization code could be intercepted (MCP authorization, Authorization Code Protection)',
      "pkce_unsupported",
    ],
    [
      "another method of PKCE",
      { code_challenge_methods_supported: ["plain"] },
      "code_challenge_methods_supported",
      `"${JSON.stringify(["plain"])}"`,
      'must include "S256", or the authorization code could be intercepted (MCP authorization, Authorization Code Protection)',
      "pkce_unsupported",
    ],
  ])("are refused for a login with %s", (_what, members, field, shown, rule, code) => {
    expect(refusalOf(checkServerMetadata, members)).toMatchObject(details(field, shown, rule, code));
  });

  it.each<[object]>([
    [{ grant_types_supported: ["client_credentials"] }],
    [{ grant_types_supported: ["urn:ietf:params:oauth:grant-type:device_code"] }],
    [{ response_types_supported: ["code", "token"] }],
    [{ authorization_endpoint: `${ISSUER}/authorize?tenant=a` }],
  ])("are taken for a login with %j", (members) => {
    expect(() => checkServerMetadata({ ...GOOD, ...members }, URL_OF, discoveryOf())).not.toThrow();
  });

  it("may leave out PKCE where the user allows that, and name no other method then either", () => {
    const allowed = discoveryOf({}, { missingPkceMetadata: true });
    const without = { ...GOOD, code_challenge_methods_supported: undefined };
    expect(() => checkServerMetadata(without, URL_OF, allowed)).not.toThrow();
    const refused = refusalOf(checkServerMetadata, { code_challenge_methods_supported: ["plain"] }, allowed);
    expect([refused.code, refused.remedy]).toEqual(["pkce_unsupported", undefined]);
    expect(refusalOf(checkServerMetadata, without).remedy).toEqual({
      action: "allow",
      option: "allowMissingPkceMetadata",
    });
  });

  it("need neither a page nor PKCE for a machine grant", () => {
    const { authorization_endpoint: _, code_challenge_methods_supported: __, ...machine } = GOOD;
    expect(checkIssuerMetadata(machine, URL_OF, discoveryOf())).toMatchObject({ tokenEndpoint: `${ISSUER}/token` });
  });
});

describe("the issuer in the metadata", () => {
  it.each<[unknown, string, string]>([
    [undefined, MISSING, ""],
    [7, '"7"', ""],
    [`${ISSUER}/`, `"${ISSUER}/"`, "; they differ by a slash at the end"],
    ["https://as.example/Pool", '"https://as.example/Pool"', "; they differ in upper and lower case"],
    [
      "https://as.example:443/pool",
      '"https://as.example:443/pool"',
      "; they differ in how the same address is written",
    ],
    ["https://other.example", '"https://other.example"', ""],
  ])("must be the requested one, and is not as %j", (issuer, shown, difference) => {
    const error = refusalOf(checkServerMetadata, { issuer });
    const rule = `must be exactly "${ISSUER}"${difference} (RFC 8414 section 3.3)`;
    expect(error).toMatchObject(details("issuer", shown, rule, "issuer_mismatch"));
    const isAddress = typeof issuer === "string";
    expect(error.remedy).toEqual(isAddress ? { action: "configure", option: "issuer", value: issuer } : undefined);
  });

  it.each([
    "https://me@as.example",
    "https://:pw@as.example",
    "https://as.example?a",
    "https://as.example#a",
    "ftp://as.example",
    "nowhere",
  ])("is no remedy as %s", (issuer) => {
    expect(refusalOf(checkServerMetadata, { issuer }).remedy).toBeUndefined();
  });

  it("may lack the slash of a host", () => {
    const document = { ...GOOD, issuer: "https://as.example" };
    const discovery = discoveryOf({ issuer: "https://as.example/" });
    expect(checkServerMetadata(document, URL_OF, discovery).issuer).toBe("https://as.example");
  });
});

describe("endpoints for clients with a certificate", () => {
  const aliases = {
    token_endpoint: "https://mtls.as.example/token",
    revocation_endpoint: "https://mtls.as.example/revoke",
    jwks_uri: "https://mtls.as.example/jwks",
  };
  const members = {
    mtls_endpoint_aliases: aliases,
    jwks_uri: `${ISSUER}/jwks`,
    revocation_endpoint: `${ISSUER}/revoke`,
    registration_endpoint: `${ISSUER}/register`,
  };

  it("are used where there are any, and by such clients alone", () => {
    expect(checkIssuerMetadata({ ...GOOD, ...members }, URL_OF, discoveryOf({ mutualTls: true }))).toMatchObject({
      tokenEndpoint: aliases.token_endpoint,
      revocationEndpoint: aliases.revocation_endpoint,
      registrationEndpoint: `${ISSUER}/register`,
      jwksUri: `${ISSUER}/jwks`,
    });
    expect(checkIssuerMetadata({ ...GOOD, ...members }, URL_OF, discoveryOf())).toMatchObject({
      tokenEndpoint: `${ISSUER}/token`,
    });
  });

  it("must be an object of addresses", () => {
    const mutualTls = discoveryOf({ mutualTls: true });
    expect(refusalOf(checkIssuerMetadata, { mtls_endpoint_aliases: "x" }, mutualTls)).toMatchObject(
      details("mtls_endpoint_aliases", '"x"', "must be an object (RFC 8705 section 5)"),
    );
    const wrong = { mtls_endpoint_aliases: { token_endpoint: "x" } };
    expect(refusalOf(checkIssuerMetadata, wrong, mutualTls).message).toMatch(
      /^mtls_endpoint_aliases\.token_endpoint "x" /,
    );
    expect(() => checkIssuerMetadata({ ...GOOD, ...wrong }, URL_OF, discoveryOf())).not.toThrow();
  });
});

describe("the origin of each endpoint", () => {
  const ENDPOINTS = [
    "authorization_endpoint",
    "token_endpoint",
    "registration_endpoint",
    "device_authorization_endpoint",
    "introspection_endpoint",
    "revocation_endpoint",
    "end_session_endpoint",
  ];
  const ELSEWHERE = "https://elsewhere.example/x";
  const rule = (why: string) => `must be at https://as.example, ${why}`;

  it.each(ENDPOINTS)("is that of the issuer where the user requires it: %s", (field) => {
    const strict = discoveryOf({}, { sameOriginEndpoints: true });
    const checks =
      field === "authorization_endpoint" ? [checkServerMetadata] : [checkServerMetadata, checkIssuerMetadata];
    for (const check of checks)
      expect(refusalOf(check, { [field]: ELSEWHERE }, strict)).toMatchObject(
        details(field, `"${ELSEWHERE}"`, rule("the origin of its issuer, where sameOriginEndpoints is set")),
      );
    expect(() => checkServerMetadata({ ...GOOD, [field]: ELSEWHERE }, URL_OF, discoveryOf())).not.toThrow();
  });

  it.each(ENDPOINTS.filter((field) => field !== "token_endpoint"))(
    "is one for all in metadata that are not the issuer's own: %s",
    (field) => {
      const foreign = discoveryOf({ foreign: { at: "https://named.example", origin: undefined } });
      const whose = `since these are not the metadata that "${ISSUER}" publishes itself`;
      expect(refusalOf(checkServerMetadata, { [field]: ELSEWHERE }, foreign)).toMatchObject(
        details(field, `"${ELSEWHERE}"`, rule(`the origin of its token_endpoint, ${whose}`)),
      );
      const ofIssuer = discoveryOf({ foreign: { at: "https://named.example", origin: "https://as.example" } });
      expect(refusalOf(checkServerMetadata, { [field]: ELSEWHERE }, ofIssuer)).toMatchObject(
        details(field, `"${ELSEWHERE}"`, rule(`the origin of the issuer, ${whose}`)),
      );
    },
  );
});
