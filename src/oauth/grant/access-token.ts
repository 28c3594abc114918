import { MASK } from "../../redact.js";
import type { Grant } from "./grant.js";

/** A token for one MCP server. It does not print: only {@link AccessToken.value} gives it. */
export class AccessToken {
  readonly #value: string;
  /** The MCP server that it is for, canonical. */
  readonly server: string;
  /** The account that the login was asked for; undefined when none was named. */
  readonly account: string | undefined;
  /** How it is used: a `DPoP` token is good only with a proof of its key at every request, which `agent.fetch` sends. */
  readonly tokenType: "Bearer" | "DPoP";
  /** What it was bound to (RFC 8707), as the issuer was told. */
  readonly resource: string;
  /** Who issued it. */
  readonly issuer: string;
  /** When it ends; undefined when the issuer did not say. */
  readonly expiresAt: Date | undefined;
  /** The scopes granted; undefined when neither asked for nor told. */
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

  /** A mask: a token that slips into a text is not shown. */
  toString(): string {
    return MASK;
  }
}
