import type { MovableClock } from "../http/clock.js";

type Payload = Record<string, unknown>;

interface Entry {
  payload: Payload;
  /** The skew of the clock when the entry was stored. */
  skew: number;
  /** When it was consumed, in milliseconds by the sandbox's clock. */
  consumedAt?: number;
}

export interface StoreSettings {
  clock: MovableClock;
  /** Seconds in which a used refresh token does not count as used. */
  reuseGrace: number;
  /** The error for a second use. */
  reused: () => Error;
}

/** The most entries of one kind; the oldest are dropped. */
const MAX_ENTRIES = 10_000;

/** The fields that hold times, in Unix seconds by the machine's clock. */
const TIMES = ["iat", "exp", "iiat", "loginTs", "authTime"] as const;

/**
 * The state of an authorization server, in memory and bounded. `find` shifts times by what the sandbox's clock was
 * moved since they were stored: oidc-provider reads the machine's clock, and so sees the age that an object has by the
 * sandbox's clock.
 */
export class OAuthStore {
  readonly #settings: StoreSettings;
  readonly #kinds = new Map<string, Map<string, Entry>>();

  constructor(settings: StoreSettings) {
    this.#settings = settings;
  }

  /** The storage of oidc-provider for a kind of object. */
  adapter(kind: string) {
    const entries = this.#entries(kind);
    const findBy = async (field: string, value: string) => {
      for (const entry of entries.values()) if (entry.payload[field] === value) return this.#read(kind, entry);
      return undefined;
    };
    return {
      upsert: async (id: string, payload: Payload) => {
        const consumedAt = entries.get(id)?.consumedAt;
        entries.delete(id);
        const { skew } = this.#settings.clock;
        entries.set(id, { payload: structuredClone(payload), skew, ...(consumedAt !== undefined && { consumedAt }) });
        if (entries.size > MAX_ENTRIES) for (const oldest of entries.keys()) return void entries.delete(oldest);
      },
      find: async (id: string | undefined) => {
        const entry = id === undefined ? undefined : entries.get(id);
        return entry && this.#read(kind, entry);
      },
      findByUid: (uid: string) => findBy("uid", uid),
      findByUserCode: (code: string) => findBy("userCode", code),
      consume: async (id: string) => this.#consume(kind, entries.get(id)),
      destroy: async (id: string) => void entries.delete(id),
      revokeByGrantId: async (grantId: string) => this.#revoke(entries, grantId),
    };
  }

  /** Whether a grant exists and was not revoked. */
  hasGrant(id: string | undefined): boolean {
    return id !== undefined && this.#entries("Grant").has(id);
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

  /** Another request may consume the entry between oidc-provider's check and this call: only this call decides. */
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
