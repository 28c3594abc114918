import type { Grant } from "./grant.js";
import { machineGrantOf } from "./machine-grant.js";

/** A login as `status` shows it: nothing in it is secret. */
export interface LoginStatus {
  profile: string;
  server: string;
  /** The account that the login was asked for; null when none was named. */
  account: string | null;
  /** How its tokens come: a person signed in, or a machine asks with this grant. */
  grant: "sign-in" | "client-credentials" | "jwt-bearer" | "id-jag";
  resource: string;
  issuer: string;
  client_id: string;
  scope: string | null;
  expires_at: string | null;
  signed_in_at: string;
  state: "valid" | "expired" | "over";
  refreshable: boolean;
  reason: string | null;
  stored_in: string;
}

const GRANTS = {
  person: "sign-in",
  client_credentials: "client-credentials",
  jwt_bearer: "jwt-bearer",
  id_jag: "id-jag",
} as const;

/** A grant without its secrets. */
export function describeLogin(grant: Grant, now: number, location: string): LoginStatus {
  const { expiresAt, scope, refreshToken } = grant.tokens;
  const machine = machineGrantOf(grant.account);
  const expired = expiresAt !== undefined && expiresAt <= now;
  return {
    profile: grant.profile,
    server: grant.server,
    account: grant.account ?? null,
    grant: GRANTS[machine ?? "person"],
    resource: grant.resource,
    issuer: grant.issuer,
    client_id: grant.client.clientId,
    scope: scope ?? null,
    expires_at: expiresAt === undefined ? null : new Date(expiresAt).toISOString(),
    signed_in_at: new Date(grant.signedInAt).toISOString(),
    state: grant.retired ? "over" : expired ? "expired" : "valid",
    // A machine asks anew, with what it was given to ask with.
    refreshable: (refreshToken !== undefined || machine !== undefined) && !grant.retired,
    reason: grant.retired?.reason ?? null,
    stored_in: location,
  };
}
