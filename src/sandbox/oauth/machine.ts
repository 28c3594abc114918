import { randomBytes, randomUUID } from "node:crypto";
import type { Clock } from "../clock.js";
import { createSigningKey, type SigningKey, signJwt } from "./keys.js";

/** What an assertion or an id token is to say. */
export interface TokenClaims {
  /** Whom it speaks for. Default: `workload` in an assertion, `alice` in an id token. */
  subject?: string;
  /** For whom it is. Default: the first pool's issuer for an assertion, the client for an id token. */
  audience?: string;
  /** How long it lives, in seconds; negative for one that has ended. Default 300. */
  ttl?: number;
}

/** What a program needs that gets tokens from the sandbox without a person. */
export interface SandboxMachine {
  /** The first pool's issuer, which knows the clients: `--issuer`, or `client.issuer`. */
  readonly issuer: string;
  /** A client that proves itself by a secret, for every grant. */
  readonly secretClient: { readonly clientId: string; readonly clientSecret: string };
  /** A client that proves itself by a key, for every grant. */
  readonly keyClient: {
    readonly clientId: string;
    /** PKCS #8, PEM. */
    readonly privateKey: string;
    readonly keyId: string;
    readonly algorithm: "ES256";
  };
  /** A client that has nothing to prove itself by, for the JWT bearer grant. */
  readonly workloadClient: { readonly clientId: string };
  /** An assertion for the JWT bearer grant, of a platform that the authorization servers trust. */
  assertion(claims?: TokenClaims): string;
  /** The identity provider, which vouches for people at the authorization servers, as {@link SandboxMachine.secretClient}. */
  readonly idp: {
    readonly issuer: string;
    readonly tokenEndpoint: string;
    readonly clientId: string;
    readonly clientSecret: string;
    /** An id token of a person who has signed in there. */
    idToken(claims?: TokenClaims): string;
  };
}

/** The path of the identity provider. */
export const IDP_PATH = "/idp";

/** The machines of a sandbox, with what the servers hold them against. Keys are made when they are first needed. */
export class Machines implements SandboxMachine {
  readonly secretClient = { clientId: "sandbox-service", clientSecret: secret() };
  readonly workloadClient = { clientId: "sandbox-workload" };
  readonly idp: SandboxMachine["idp"];
  /** Who signs assertions. */
  readonly platform: string;
  readonly #clock: Clock;
  readonly #audience: () => string;
  readonly #keys = new Map<"client" | "platform" | "idp", SigningKey>();
  /** What was used that may be used once, each with the time at which it ends anyway. */
  readonly #used = new Map<string, number>();

  constructor(origin: string, clock: Clock, audience: () => string) {
    this.#clock = clock;
    this.#audience = audience;
    this.platform = `${origin}/platform`;
    const issuer = origin + IDP_PATH;
    const client = { clientId: "sandbox-agent", clientSecret: secret() };
    this.idp = {
      issuer,
      tokenEndpoint: `${issuer}/token`,
      ...client,
      idToken: ({ subject = "alice", audience: aud = client.clientId, ttl }: TokenClaims = {}) =>
        signJwt(this.key("idp"), "JWT", { iss: issuer, sub: subject, aud, ...this.times(ttl) }),
    };
  }

  get issuer(): string {
    return this.#audience();
  }

  get keyClient(): SandboxMachine["keyClient"] {
    const { kid: keyId, privateKey } = this.key("client");
    const pem = privateKey.export({ format: "pem", type: "pkcs8" }) as string;
    return { clientId: "sandbox-key-service", privateKey: pem, keyId, algorithm: "ES256" };
  }

  assertion({ subject = "workload", audience = this.#audience(), ttl }: TokenClaims = {}): string {
    return signJwt(this.key("platform"), "JWT", {
      iss: this.platform,
      sub: subject,
      aud: audience,
      ...this.times(ttl),
    });
  }

  /** The key of a party. */
  key(party: "client" | "platform" | "idp"): SigningKey {
    const key = this.#keys.get(party) ?? createSigningKey();
    this.#keys.set(party, key);
    return key;
  }

  /** When something is made and ends by the sandbox's clock, and the id by which it is told apart. */
  times(ttl = 300): { iat: number; exp: number; jti: string } {
    const now = this.now();
    return { iat: now, exp: now + ttl, jti: randomUUID() };
  }

  /** Unix seconds by the sandbox's clock. */
  now(): number {
    return Math.floor(this.#clock.now() / 1000);
  }

  /** Notes that something is used that may be used once; whether this is the first time. */
  useOnce(id: string, until: number): boolean {
    for (const [known, end] of this.#used) if (end <= this.now()) this.#used.delete(known);
    if (this.#used.has(id)) return false;
    this.#used.set(id, until);
    return true;
  }

  toJSON(): object {
    const { clientId } = this.secretClient;
    return { secretClient: { clientId }, workloadClient: this.workloadClient, idp: { issuer: this.idp.issuer } };
  }

  [Symbol.for("nodejs.util.inspect.custom")](): object {
    return this.toJSON();
  }
}

function secret(): string {
  return `sandbox_secret_${randomBytes(18).toString("base64url")}`;
}
