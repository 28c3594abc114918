import { SECRET_MASK } from "../../redact.js";
import type { Grant } from "../model/grant.js";

/** A token for one MCP server. Printing it shows a mask: only {@link AccessToken.value} returns the token. */
export class AccessToken {
  readonly #value: string;
  /** The MCP server that it is for, canonical. */
  readonly server: string;
  /** The account that the login requested; undefined if none was named. */
  readonly account: string | undefined;
  /**
   * The token type: a `DPoP` token is valid only with a proof of its key in every request, which `agent.fetch` sends.
   */
  readonly tokenType: "Bearer" | "DPoP";
  /** The `resource` that was sent to the issuer (RFC 8707); `none` if none was sent, by the choice of the user. */
  readonly resource: string;
  /** Who issued it. */
  readonly issuer: string;
  /** When it expires; undefined if the issuer did not say. */
  readonly expiresAt: Date | undefined;
  /** The scopes granted; undefined if neither requested nor returned. */
  readonly scope: string | undefined;

  constructor(grant: Grant) {
    this.#value = grant.tokens.accessToken.reveal();
    this.server = grant.server;
    this.account = grant.account;
    this.tokenType = grant.proofKey === undefined ? "Bearer" : "DPoP";
    this.resource = grant.resource;
    this.issuer = grant.issuer;
    this.expiresAt = grant.tokens.expiresAt === undefined ? undefined : new Date(grant.tokens.expiresAt);
    this.scope = grant.tokens.scope;
  }

  /** The token itself. */
  get value(): string {
    return this.#value;
  }

  /** A mask, so that a token in a text is not shown. */
  toString(): string {
    return SECRET_MASK;
  }
}
