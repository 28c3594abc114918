import type { Secret } from "../../redact.js";
import type { ServerMetadata } from "../discovery/types.js";
import type { ClientRecord } from "../grant/grant.js";
import type { PendingAuthorization } from "./authorization.js";

/** A login whose person has been, or is to be, sent off: all that is needed to make a grant of the callback. */
export interface PreparedLogin {
  /** The MCP server, canonical. */
  readonly server: string;
  /** The account that is asked for; undefined when none was named. */
  readonly account: string | undefined;
  /** The authorization server. */
  readonly issuer: ServerMetadata;
  /** The client that asks. */
  readonly client: ClientRecord;
  /** The scopes that are asked for. */
  readonly scope: readonly string[];
  /** Those among them that nobody asked for: left out where the issuer does not like them. */
  readonly addedScope: readonly string[];
  /** What is sent as `resource`. */
  readonly resource: string;
  /** The rules that were lifted for this issuer, by the names of the client's options. */
  readonly overrides: readonly string[];
  /** The key that the tokens are to be bound to. */
  readonly proofKey: Secret | undefined;
  /** The authorization request, with the secrets that prove the callback to be its own. */
  readonly pending: PendingAuthorization;
}

/** A login whose callback was judged. */
export interface AuthorizedLogin {
  /** The login as it was asked for in the end. */
  login: PreparedLogin;
  /** The callback's parameters, as `checkCallback` passed them. */
  parameters: URLSearchParams;
}
