import { createHash, randomBytes } from "node:crypto";
import type { SandboxClock } from "../http/clock.js";
import type { ServerShape } from "./shape.js";

/** A client that may log users in. */
export interface ShapeClientRecord {
  id: string;
  secret: string | undefined;
  /** Its redirect addresses without port; undefined for any on this machine. */
  redirects: readonly string[] | undefined;
}

/** What a code and a token stand for. */
export interface ShapeGrant {
  clientId: string;
  subject: string;
  scope: string;
  /** Whether a refresh token is issued for it. */
  isOffline: boolean;
}

interface Code extends ShapeGrant {
  redirectUri: string;
  challenge: string;
  expiresAt: number;
}

/** The grant of an access token. */
export interface ShapeToken extends ShapeGrant {
  /** Milliseconds since 1970. */
  expiresAt: number;
}

const CODE_MS = 60_000;
const DEFAULT_LIFETIME = 3600;

/** The codes and tokens of an authorization server. */
export class ShapeTokens {
  readonly #shape: ServerShape;
  readonly #clock: SandboxClock;
  readonly #codes = new Map<string, Code>();
  readonly #access = new Map<string, ShapeToken>();
  readonly #refresh = new Map<string, ShapeGrant>();

  constructor(shape: ServerShape, clock: SandboxClock) {
    this.#shape = shape;
    this.#clock = clock;
  }

  /** A code for one token request. */
  code(grant: ShapeGrant & Pick<Code, "redirectUri" | "challenge">): string {
    const code = randomToken();
    this.#codes.set(code, { ...grant, expiresAt: this.#clock.now() + CODE_MS });
    return code;
  }

  /** The grant of a code, once; undefined if anything of the request differs from that of the code. */
  redeem(form: URLSearchParams, clientId: string): ShapeGrant | undefined {
    const code = form.get("code") ?? "";
    const found = this.#codes.get(code);
    this.#codes.delete(code);
    const challenge = createHash("sha256")
      .update(form.get("code_verifier") ?? "")
      .digest("base64url");
    if (found === undefined || found.expiresAt <= this.#clock.now() || found.clientId !== clientId) return undefined;
    if (found.redirectUri !== form.get("redirect_uri") || found.challenge !== challenge) return undefined;
    const { subject, scope, isOffline } = found;
    return { clientId, subject, scope, isOffline };
  }

  /** The grant of a refresh token; one that rotates is valid once. */
  refresh(token: string, clientId: string): ShapeGrant | undefined {
    const found = this.#refresh.get(token);
    if (found?.clientId !== clientId) return undefined;
    if (this.#shape.refresh !== "keep") this.#refresh.delete(token);
    return found;
  }

  /** The grant of an access token; undefined for any other token and an expired one. */
  find(token: string): ShapeToken | undefined {
    const found = this.#access.get(token);
    return found && found.expiresAt > this.#clock.now() ? found : undefined;
  }

  /** The members of a token response. */
  issue(grant: ShapeGrant, isRefresh: boolean): Record<string, unknown> {
    const { lifetime = DEFAULT_LIFETIME, refresh = "rotate", token, idToken } = this.#shape;
    const now = this.#clock.now();
    const access = randomToken();
    this.#access.set(access, {
      ...grant,
      expiresAt: lifetime === 0 ? Number.POSITIVE_INFINITY : now + lifetime * 1000,
    });
    const sendsRefreshToken = grant.isOffline && (refresh === "rotate" || (refresh === "keep" && !isRefresh));
    const next = sendsRefreshToken ? randomToken() : undefined;
    if (next !== undefined) this.#refresh.set(next, grant);
    const iat = Math.floor(now / 1000);
    const all = {
      access_token: access,
      token_type: "Bearer",
      expires_in: DEFAULT_LIFETIME,
      refresh_token: next,
      scope: grant.scope,
      id_token: idToken && unsignedJwt({ sub: grant.subject, aud: grant.clientId, iat, exp: iat + 3600, ...idToken }),
      ...token,
    };
    return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined && value !== null));
  }
}

function randomToken(): string {
  return randomBytes(24).toString("base64url");
}

function unsignedJwt(claims: object): string {
  const parts = [{ alg: "RS256", typ: "JWT" }, claims].map((part) => Buffer.from(JSON.stringify(part)));
  return [...parts, randomBytes(256)].map((part) => part.toString("base64url")).join(".");
}
