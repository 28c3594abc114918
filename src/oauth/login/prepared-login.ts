import { AgentAuthError } from "../../errors.js";
import { Secret } from "../../redact.js";
import type { AuthorizationParams } from "../model/authorization-params.js";
import type { ClientRecord } from "../model/grant.js";
import type { ServerMetadata } from "../model/metadata.js";
import type { PendingAuthorization } from "./authorization.js";
import type { DevicePrompt } from "./login-method.js";

/** A login before its callback: everything that is needed to make a grant of it. */
export interface PreparedLogin {
  /** The MCP server, or the identity provider, canonical. */
  readonly server: string;
  /** The requested account; undefined if none was named. */
  readonly account: string | undefined;
  /** The authorization server. */
  readonly issuer: ServerMetadata;
  /** The client of the login. */
  readonly client: ClientRecord;
  /** The requested scopes. */
  readonly scope: readonly string[];
  /** Those of them that the caller did not request: omitted if the issuer rejects them. */
  readonly addedScope: readonly string[];
  /** The `resource` parameter; `none` if none is sent. */
  readonly resource: string;
  /** What the user chose for this issuer, by the names of the client's options. */
  readonly overrides: readonly string[];
  /** The token type beside `Bearer` that is accepted from this issuer. */
  readonly acceptedTokenType?: string | undefined;
  /** The user's parameters of the authorization request. */
  readonly authorizationParams?: AuthorizationParams | undefined;
  /** Whether the issuer returns a refresh token only after a forced consent; undefined if no earlier login showed that. */
  readonly needsConsent?: boolean | undefined;
  /** The key that the tokens are bound to. */
  readonly proofKey: Secret | undefined;
  /** The authorization request, with the secrets that the callback is validated with. */
  readonly pending: PendingAuthorization;
}

/** A device login before the user has entered its code (RFC 8628): everything that is needed to make a grant of it. */
export interface PreparedDeviceLogin extends Omit<PreparedLogin, "pending" | "addedScope"> {
  /** The issuer's answer, with the secret to poll with. */
  readonly device: DeviceAuthorization;
  /**
   * Called with the seconds between two polls when the issuer demands more of them (RFC 8628 section 3.5): store them as
   * `device.intervalSeconds`, so that another process that finishes this login does not poll too fast.
   */
  readonly onSlowDown?: ((intervalSeconds: number) => void) | undefined;
}

/** The answer of a device authorization endpoint (RFC 8628 section 3.2), checked. */
export interface DeviceAuthorization extends Readonly<Omit<DevicePrompt, "expiresInSeconds">> {
  /** The secret to poll with. */
  readonly deviceCode: Secret;
  /** Seconds between two polls. */
  readonly intervalSeconds: number;
  /** Unix milliseconds when the code expires. */
  readonly expiresAt: number;
}

/** A login whose callback has been validated. */
export interface AuthorizedLogin {
  /** The login as last requested. */
  login: PreparedLogin;
  /** The callback's parameters, as returned by `checkCallback`. */
  parameters: URLSearchParams;
}

/** Rejects a login that was stored as JSON, in which a mask replaces each secret. */
export function requireSecrets({ pending }: PreparedLogin): void {
  if (pending?.verifier instanceof Secret) return;
  const message = "the prepared login has lost its secrets: JSON and logs contain a mask in their place";
  const hint =
    "pass the object of beginLogin itself, or use startLogin and handleCallback, which save a login between processes";
  throw new AgentAuthError("usage", message, { class: "usage", hint });
}
