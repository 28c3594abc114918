import type { ClientRecord, Grant } from "../../src/oauth/model/grant.js";
import { Secret } from "../../src/redact.js";

/** A client record with every member set. */
export function madeClient(over: Partial<ClientRecord> = {}): ClientRecord {
  return {
    issuer: "https://as.example/pool",
    clientId: "client-1",
    clientSecret: new Secret("client-secret-1"),
    secretExpiresAt: undefined,
    authMethod: "client_secret_basic",
    source: "dynamic",
    redirectUri: "http://127.0.0.1:49152/callback",
    ...over,
  };
}

/** A grant with every member set. */
export function madeGrant(over: Partial<Grant> = {}): Grant {
  return {
    profile: "default",
    server: "https://mcp.example/mcp",
    account: undefined,
    resource: "https://mcp.example/mcp",
    issuer: "https://as.example/pool",
    endpoints: {
      token: "https://as.example/pool/token",
      introspection: "https://as.example/pool/introspect",
      revocation: "https://as.example/pool/revoke",
      endSession: "https://as.example/pool/end_session",
      jwks: "https://as.example/pool/jwks",
    },
    client: madeClient(),
    requestedScope: "tools",
    overrides: [],
    tokens: {
      accessToken: new Secret("access-token-1"),
      refreshToken: new Secret("refresh-token-1"),
      idToken: new Secret("id-token-1"),
      expiresAt: 2_000_000_000_000,
      obtainedAt: 1_700_000_000_000,
      scope: "tools",
    },
    signedInAt: 1_700_000_000_000,
    refusals: [],
    generation: 1,
    retired: undefined,
    ...over,
  };
}

const reveal = (secret: Secret | undefined) => secret?.reveal();

/** A grant as plain data, secrets revealed, for comparing. */
export function plainGrant({ tokens, client, proofKey, ...grant }: Grant) {
  return {
    ...grant,
    client: { ...client, clientSecret: reveal(client.clientSecret) },
    proofKey: reveal(proofKey),
    tokens: {
      ...tokens,
      accessToken: tokens.accessToken.reveal(),
      refreshToken: reveal(tokens.refreshToken),
      idToken: reveal(tokens.idToken),
    },
  };
}
