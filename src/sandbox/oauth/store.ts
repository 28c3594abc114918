import type { Clock } from "../clock.js";

type Payload = Record<string, unknown>;

interface Entry {
  payload: Payload;
  /** The clock's skew when it was stored. */
  skew: number;
  /** When it was used up, in milliseconds by the sandbox's clock. */
  consumedAt?: number;
}

/** Where oidc-provider keeps things of one kind. */
export interface Adapter {
  upsert(id: string, payload: Payload): Promise<void>;
  find(id: string | undefined): Promise<Payload | undefined>;
  findByUid(uid: string): Promise<Payload | undefined>;
  findByUserCode(code: string): Promise<Payload | undefined>;
  consume(id: string): Promise<void>;
  destroy(id: string): Promise<void>;
  revokeByGrantId(grantId: string): Promise<void>;
}

/** What a store is made of. */
export interface StoreSettings {
  clock: Clock;
  /** Seconds in which a used refresh token does not count as used. */
  reuseGrace: number;
  /** The error for what is used twice. */
  reused: () => Error;
}

/** The most entries of one kind; the oldest give way. */
const MAX_ENTRIES = 10_000;

/** Times in what is stored, in Unix seconds by the machine's clock. */
const TIMES = ["iat", "exp", "iiat", "loginTs", "authTime"] as const;

/**
 * What an authorization server remembers, in memory and bounded. Times are shifted by what the sandbox's clock was
 * put forward since they were stored, so that to oidc-provider, which reads the machine's clock, a thing is as old as
 * it is by the sandbox's.
 */
export class OAuthStore {
  readonly #settings: StoreSettings;
  readonly #kinds = new Map<string, Map<string, Entry>>();

  constructor(settings: StoreSettings) {
    this.#settings = settings;
  }

  /** The adapter for a kind of things. */
  adapter(kind: string): Adapter {
    const entries = this.#entries(kind);
    const findBy = async (field: string, value: string) => {
      for (const entry of entries.values()) if (entry.payload[field] === value) return this.#read(kind, entry);
      return undefined;
    };
    return {
      upsert: async (id, payload) => {
        const consumedAt = entries.get(id)?.consumedAt;
        entries.delete(id);
        const { skew } = this.#settings.clock;
        entries.set(id, { payload: structuredClone(payload), skew, ...(consumedAt !== undefined && { consumedAt }) });
        if (entries.size > MAX_ENTRIES) for (const oldest of entries.keys()) return void entries.delete(oldest);
      },
      find: async (id) => {
        const entry = id === undefined ? undefined : entries.get(id);
        return entry && this.#read(kind, entry);
      },
      findByUid: (uid) => findBy("uid", uid),
      findByUserCode: (code) => findBy("userCode", code),
      consume: async (id) => this.#consume(kind, entries.get(id)),
      destroy: async (id) => void entries.delete(id),
      revokeByGrantId: async (grantId) => this.#revoke(entries, grantId),
    };
  }

  /** Forgets every registered client. */
  forgetClients(): void {
    this.#entries("Client").clear();
  }

  /** Whether a grant is there and was not revoked. */
  hasGrant(id: string): boolean {
    return this.#entries("Grant").has(id);
  }

  #entries(kind: string): Map<string, Entry> {
    const known = this.#kinds.get(kind) ?? new Map<string, Entry>();
    this.#kinds.set(kind, known);
    return known;
  }

  #read(kind: string, entry: Entry): Payload {
    const payload = structuredClone(entry.payload);
    const shift = this.#settings.clock.skew - entry.skew;
    for (const name of TIMES) if (typeof payload[name] === "number") payload[name] -= shift;
    if (this.#isConsumed(kind, entry)) payload["consumed"] = true;
    return payload;
  }

  #isConsumed(kind: string, { consumedAt }: Entry): boolean {
    if (consumedAt === undefined) return false;
    const { clock, reuseGrace } = this.#settings;
    return kind !== "RefreshToken" || clock.now() - consumedAt >= reuseGrace * 1000;
  }

  /** Between oidc-provider's look and this call another request may have been first: only here is it decided. */
  #consume(kind: string, entry: Entry | undefined): void {
    if (!entry || this.#isConsumed(kind, entry)) {
      const grantId = entry?.payload["grantId"];
      if (typeof grantId === "string") {
        for (const entries of this.#kinds.values()) this.#revoke(entries, grantId);
        this.#entries("Grant").delete(grantId);
      }
      throw this.#settings.reused();
    }
    entry.consumedAt ??= this.#settings.clock.now();
  }

  #revoke(entries: Map<string, Entry>, grantId: string): void {
    for (const [id, { payload }] of entries) if (payload["grantId"] === grantId) entries.delete(id);
  }
}
