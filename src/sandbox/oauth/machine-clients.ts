import { JWT_BEARER } from "./jwt-bearer.js";
import { SIGNING_ALG } from "./keys.js";
import type { Machines } from "./machine.js";
import { TOKEN_EXCHANGE_GRANT } from "./token-exchange.js";

/** The client authentication methods, with those of machine clients. */
export const MACHINE_AUTH_METHODS: readonly string[] = [
  "client_secret_basic",
  "client_secret_post",
  "none",
  "private_key_jwt",
];

/** The pre-registered clients of an authorization server, in the form of oidc-provider. */
export function machineClients(machines: Machines): object[] {
  const { secretClient, keyClient, workloadClient } = machines;
  const { kid, crv, kty, x, y } = machines.key("client").jwk;
  const common = { redirect_uris: [], response_types: [] };
  const all = ["client_credentials", JWT_BEARER, TOKEN_EXCHANGE_GRANT];
  return [
    {
      ...common,
      client_id: secretClient.clientId,
      client_secret: secretClient.clientSecret,
      token_endpoint_auth_method: "client_secret_basic",
      grant_types: all,
    },
    {
      ...common,
      client_id: keyClient.clientId,
      jwks: { keys: [{ kid, crv, kty, x, y, use: "sig", alg: SIGNING_ALG }] },
      token_endpoint_auth_method: "private_key_jwt",
      token_endpoint_auth_signing_alg: SIGNING_ALG,
      grant_types: all,
    },
    {
      ...common,
      client_id: workloadClient.clientId,
      token_endpoint_auth_method: "none",
      grant_types: [JWT_BEARER, TOKEN_EXCHANGE_GRANT],
    },
  ];
}
