import { randomBytes, randomUUID } from "node:crypto";
import { splitScope } from "../../oauth/model/scope.js";
import type { MovableClock } from "../http/clock.js";
import { createSigningKey, type SigningKey, signJwt } from "./keys.js";

/** The claims of an assertion or an id token. */
export interface AssertionClaims {
  /** The claim `sub`. Default: `workload` in an assertion, `alice` in an id token. */
  subject?: string;
  /** The claim `aud`. Default: the first pool's issuer for an assertion, the client for an id token. */
  audience?: string;
  /** Lifetime in seconds; negative for an expired one. Default 300. */
  ttlSeconds?: number;
}

/** The credentials for the machine grants of the sandbox. */
export interface SandboxMachine {
  /** The first pool's issuer, where the clients are registered: `--issuer`, or `client.issuer`. */
  readonly issuer: string;
  /** A client with a secret, for every machine grant. */
  readonly secretClient: { readonly clientId: string; readonly clientSecret: string };
  /** A client with a private key, for every machine grant. */
  readonly keyClient: {
    readonly clientId: string;
    /** PKCS #8, PEM. */
    readonly privateKey: string;
    readonly keyId: string;
    readonly algorithm: "ES256";
  };
  /** A public client, for the JWT bearer grant. */
  readonly workloadClient: { readonly clientId: string };
  /** An assertion for the JWT bearer grant, signed by a platform that the authorization servers trust. */
  assertion(claims?: AssertionClaims): string;
  /** The identity provider of a company, whose ID-JAGs the authorization servers accept. Users log in there. */
  readonly idp: {
    readonly issuer: string;
    readonly tokenEndpoint: string;
    readonly clientId: string;
    readonly clientSecret: string;
    /** A public client there, which is {@link SandboxMachine.workloadClient} at the authorization servers. */
    readonly nativeClient: { readonly clientId: string };
    /** An id token of a user who is logged in there. */
    idToken(claims?: AssertionClaims): string;
    /** Sets whether the policy of the company denies its users an authorization server. Default of `isDenied`: true. */
    deny(issuer: string, isDenied?: boolean): void;
    /**
     * Sets the client of the authorization servers that the native client is, such as the address of its metadata document.
     * Default: {@link SandboxMachine.workloadClient}.
     */
    nameClient(clientId: string): void;
    /** Sets the scopes that the policy allows at an authorization server. Without `scopes`, it allows all. */
    limitScopes(issuer: string, scopes?: readonly string[]): void;
  };
}

/** The path of the identity provider. */
export const IDP_PATH = "/idp";

/** The machine clients of a sandbox and the keys that the servers verify them with. Keys are generated on first use. */
export class Machines implements SandboxMachine {
  readonly secretClient = { clientId: "sandbox-service", clientSecret: createSecret() };
  readonly workloadClient = { clientId: "sandbox-workload" };
  readonly idp: SandboxMachine["idp"];
  /** The issuer of the assertions. */
  readonly platform: string;
  readonly #clock: MovableClock;
  readonly #audience: () => string;
  readonly #denied = new Set<string>();
  #nativeAtServers: string | undefined;
  readonly #scopes = new Map<string, readonly string[]>();
  readonly #keys = new Map<"client" | "platform" | "idp", SigningKey>();
  /** The used ids of assertions that are valid once, with their expiry. */
  readonly #used = new Map<string, number>();

  constructor(origin: string, clock: MovableClock, audience: () => string) {
    this.#clock = clock;
    this.#audience = audience;
    this.platform = `${origin}/platform`;
    const issuer = origin + IDP_PATH;
    const client = { clientId: "sandbox-agent", clientSecret: createSecret() };
    this.idp = {
      issuer,
      tokenEndpoint: `${issuer}/token`,
      ...client,
      nativeClient: { clientId: "sandbox-desktop" },
      deny: (server, isDenied = true) => void (isDenied ? this.#denied.add(server) : this.#denied.delete(server)),
      nameClient: (clientId) => {
        this.#nativeAtServers = clientId;
      },
      limitScopes: (server, scopes) => void (scopes ? this.#scopes.set(server, scopes) : this.#scopes.delete(server)),
      idToken: ({ subject = "alice", audience: aud = client.clientId, ttlSeconds }: AssertionClaims = {}) =>
        signJwt(this.key("idp"), "JWT", { iss: issuer, sub: subject, aud, ...this.times(ttlSeconds) }),
    };
  }

  /** Whether the policy of the company denies its users an authorization server. */
  isDenied(issuer: string): boolean {
    return this.#denied.has(issuer);
  }

  /** The scopes of a request that the policy of the company allows at an authorization server. */
  allowedScopes(issuer: string, requested: string | undefined): string | undefined {
    const limit = this.#scopes.get(issuer);
    if (limit === undefined) return requested;
    return (requested === undefined ? limit : splitScope(requested).filter((one) => limit.includes(one))).join(" ");
  }

  /** The client of the authorization servers that a client of the identity provider is. */
  clientAtServers(clientId: string): string {
    const { idp, secretClient, workloadClient } = this;
    if (clientId === idp.nativeClient.clientId) return this.#nativeAtServers ?? workloadClient.clientId;
    return clientId === idp.clientId ? secretClient.clientId : clientId;
  }

  get issuer(): string {
    return this.#audience();
  }

  get keyClient(): SandboxMachine["keyClient"] {
    const { jwk, privateKey } = this.key("client");
    const pem = privateKey.export({ format: "pem", type: "pkcs8" }) as string;
    return { clientId: "sandbox-key-service", privateKey: pem, keyId: jwk.kid, algorithm: "ES256" };
  }

  assertion({ subject = "workload", audience = this.#audience(), ttlSeconds }: AssertionClaims = {}): string {
    return signJwt(this.key("platform"), "JWT", {
      iss: this.platform,
      sub: subject,
      aud: audience,
      ...this.times(ttlSeconds),
    });
  }

  key(party: "client" | "platform" | "idp"): SigningKey {
    const key = this.#keys.get(party) ?? createSigningKey();
    this.#keys.set(party, key);
    return key;
  }

  /** The claims `iat` and `exp` by the sandbox's clock, and a unique `jti`. */
  times(ttl = 300): { iat: number; exp: number; jti: string } {
    const now = this.now();
    return { iat: now, exp: now + ttl, jti: randomUUID() };
  }

  /** Unix seconds by the sandbox's clock. */
  now(): number {
    return Math.floor(this.#clock.now() / 1000);
  }

  /** Records the use of an id; returns whether it is the first use. */
  useOnce(id: string, expiry: number): boolean {
    for (const [used, expiry] of this.#used) if (expiry <= this.now()) this.#used.delete(used);
    if (this.#used.has(id)) return false;
    this.#used.set(id, expiry);
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

function createSecret(): string {
  return `sandbox_secret_${randomBytes(18).toString("base64url")}`;
}
