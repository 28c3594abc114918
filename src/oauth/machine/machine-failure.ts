import { isAgentAuthError, withHint } from "../../errors.js";
import { quote } from "../../redact.js";
import type { ClientRecord } from "../grant/grant.js";
import type { MachineGrant } from "./machine-grant.js";

/** Who asked, and how. */
export interface Asked {
  grant: MachineGrant;
  client: ClientRecord;
}

/** An issuer's verdict on a machine's request, with what helps. There is no person who could sign in instead. */
export function machineFailure(thrown: unknown, asked: Asked): unknown {
  if (!isAgentAuthError(thrown) || thrown.hint !== undefined) return thrown;
  const hint = hintFor(thrown.code, asked);
  return hint === undefined ? thrown : withHint(thrown, hint);
}

function hintFor(code: string, { grant, client }: Asked): string | undefined {
  switch (code) {
    case "invalid_client":
      return grant.type === "id_jag"
        ? `check both clients: ${proofOf(client)}; and --idp-client-id with AGENTAUTH_IDP_CLIENT_SECRET`
        : `check ${proofOf(client)}`;
    case "invalid_grant":
      return GRANT_HINTS[grant.type];
    case "unauthorized_client":
      return `the client ${quote(client.clientId)} has to be allowed the grant ${grant.type} at the issuer`;
    case "unsupported_grant_type":
      return `the issuer does not do the grant ${grant.type}: agentauth discover <mcp_url> shows which it names`;
    case "invalid_scope":
      return "ask for scopes that the issuer gives this client: --scope <scopes>";
    case "invalid_target":
      return "the issuer gives this client no token for the server; --resource <uri> names it in another way";
    default:
      return undefined;
  }
}

const GRANT_HINTS: Readonly<Record<MachineGrant["type"], string | undefined>> = {
  client_credentials: undefined,
  jwt_bearer:
    "the assertion has to be current, for this issuer, and of somebody whom it trusts: --assertion-file <file>",
  id_jag: "sign in again at the identity provider, and give its new id token in AGENTAUTH_ID_TOKEN or --id-token-file",
};

function proofOf({ clientId, authMethod }: ClientRecord): string {
  const name = `--client-id ${quote(clientId)}`;
  if (authMethod === "private_key_jwt")
    return `${name}, and that the issuer knows the public half of --private-key, with its --key-id if it has one`;
  if (authMethod === "none") return `${name}; the issuer may want it to prove itself, by a secret or a key`;
  return `${name}, and its secret in AGENTAUTH_CLIENT_SECRET or --client-secret-file`;
}
