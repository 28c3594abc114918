import { isAgentAuthError, withHint } from "../../errors.js";
import { quote } from "../../redact.js";
import type { ClientRecord } from "../grant/grant.js";
import { strategyOf } from "./grant-strategies.js";
import type { MachineGrant } from "./types.js";

/** A grant and the client that requested it. */
export interface RequestingClient {
  grant: MachineGrant;
  client: ClientRecord;
}

/** The issuer's error with a hint that fits the grant: no user could log in instead. */
export function machineFailure(thrown: unknown, requested: RequestingClient): unknown {
  if (!isAgentAuthError(thrown) || thrown.hint !== undefined) return thrown;
  const hint = strategyOf(requested.grant).explain?.(thrown.code, proofOf(requested.client));
  const common = hint ?? hintFor(thrown.code, requested);
  return common === undefined ? thrown : withHint(thrown, common);
}

function hintFor(code: string, { grant, client }: RequestingClient): string | undefined {
  switch (code) {
    case "invalid_client":
      return `check ${proofOf(client)}`;
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

function proofOf({ clientId, authMethod }: ClientRecord): string {
  const name = `--client-id ${quote(clientId)}`;
  if (authMethod === "private_key_jwt")
    return `${name}, and that the issuer knows the public half of --private-key, with its --key-id if it has one`;
  if (authMethod === "none") return `${name}; the issuer may want it to prove itself, by a secret or a key`;
  return `${name}, and its secret in AGENTAUTH_CLIENT_SECRET or --client-secret-file`;
}
