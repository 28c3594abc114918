import { type Advice, isAgentAuthError, withHint } from "../../errors.js";
import { quote } from "../../redact.js";
import type { ClientRecord } from "../model/grant.js";
import type { MachineGrant } from "../model/machine-grant.js";
import { strategyOf } from "./grant-strategies.js";

/** A grant and the client that requested it. */
export interface RequestingClient {
  grant: MachineGrant;
  client: ClientRecord;
}

/** The issuer's error with a hint that fits the grant: no user could log in instead. */
export function machineFailure(thrown: unknown, requested: RequestingClient): unknown {
  if (!isAgentAuthError(thrown) || thrown.hint !== undefined || thrown.remedy !== undefined) return thrown;
  const { hint, remedy } = strategyOf(requested.grant).explain?.(thrown.code) ?? commonAdvice(thrown.code, requested);
  return hint === undefined ? thrown : withHint(thrown, hint, remedy);
}

function commonAdvice(code: string, { grant, client }: RequestingClient): Advice {
  switch (code) {
    case "invalid_client":
      return clientAdvice(grant, client);
    case "unauthorized_client":
      return { hint: `the client ${quote(client.clientId)} has to be allowed the grant ${grant.type} at the issuer` };
    case "unsupported_grant_type":
      return {
        hint: `the issuer does not do the grant ${grant.type}`,
        remedy: { action: "inspect", subject: "grants" },
      };
    case "invalid_scope":
      return {
        hint: "ask for scopes that the issuer gives this client",
        remedy: { action: "configure", option: "scope" },
      };
    default:
      return {};
  }
}

/** Which client to check, and what it authenticates with; the client at the identity provider may be wrong as well. */
function clientAdvice(grant: MachineGrant, { clientId, authMethod }: ClientRecord): Advice {
  const option = authMethod === "private_key_jwt" ? "privateKey" : authMethod === "none" ? "clientId" : "clientSecret";
  const what = `client ${quote(clientId)}${option === "clientId" ? "" : ` and its ${option}`}`;
  return {
    hint: `check the ${what}`,
    remedy: { action: "configure", option, clientId, ...("idp" in grant && { also: "idp" }) },
  };
}
