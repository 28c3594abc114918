import type { Secret } from "../../redact.js";
import type { ServerMetadata } from "../discovery/types.js";
import type { ClientRecord } from "../grant/grant.js";
import type { PendingAuthorization } from "./authorization.js";

/** A login before its callback: everything that is needed to make a grant of it. */
export interface PreparedLogin {
  /** The MCP server, canonical. */
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
  /** The `resource` parameter. */
  readonly resource: string;
  /** The checks disabled for this issuer, by the names of the client's options. */
  readonly overrides: readonly string[];
  /** The key that the tokens are bound to. */
  readonly proofKey: Secret | undefined;
  /** The authorization request, with the secrets that the callback is validated with. */
  readonly pending: PendingAuthorization;
}

/** A login whose callback has been validated. */
export interface AuthorizedLogin {
  /** The login as last requested. */
  login: PreparedLogin;
  /** The callback's parameters, as returned by `checkCallback`. */
  parameters: URLSearchParams;
}
