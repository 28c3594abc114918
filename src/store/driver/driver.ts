/** What a record is; the core may add kinds, so a driver treats it as a word of lower-case letters. */
export type RecordKind = "grant" | "client" | "binding" | "login" | "lease" | "key" | "revocation";

/**
 * The name of a record. The core chooses partition and id so that they show nothing about a tenant, a server or an account.
 * Both are well-formed texts of 1 to 1,024 bytes; a driver must not assume anything else about their characters.
 */
export interface RecordKey {
  /** What the record is. */
  readonly kind: RecordKind;
  /** All records of one tenant: one hash slot of a cluster, one index. */
  readonly partition: string;
  /** Which record of its kind and partition it is. */
  readonly id: string;
}

declare const VERSION: unique symbol;

/** An opaque version of a record. A driver never uses one twice for the same key, not even after the record was deleted. */
export type Version = string & {
  /** Makes a version differ from other texts for the compiler. */
  readonly [VERSION]: true;
};

/** A record as it is stored. */
export interface StoredRecord {
  /** Its name, as it was put. */
  readonly key: RecordKey;
  /** The version that this value has. */
  readonly version: Version;
  /** Text of up to 256 KiB without U+0000, which the engine cannot read. */
  readonly value: string;
  /** Its {@link PutOptions.dueAt}, in a scan by that. */
  readonly dueAt?: number | undefined;
}

/** Options of each operation. */
export interface DriverCallOptions {
  /** Aborts the wait for the engine with `AgentAuthError` `aborted`; the operation may have happened. */
  readonly signal?: AbortSignal | undefined;
}

/** Options of {@link StoreDriver.put}. */
export interface PutOptions extends DriverCallOptions {
  /** Milliseconds after which the record is removed, by the engine's clock. Default: it stays. */
  readonly expiresInMs?: number | undefined;
  /** Texts without U+0000 to find the record by; they replace those of the previous version. */
  readonly tags?: Readonly<Record<string, string>> | undefined;
  /** A whole number that scans find the record by; null for none. Default: that of the previous version. */
  readonly dueAt?: number | null | undefined;
}

/** Which records a scan returns. */
export interface ScanFilter {
  /** Only records of this kind. */
  readonly kind: RecordKind;
  /** Default: every partition. */
  readonly partition?: string | undefined;
  /** Only records with all of these tags. Only together with a partition. */
  readonly tags?: Readonly<Record<string, string>> | undefined;
  /**
   * Only records whose `dueAt` is at most this, the lowest first, and of those only the first part. Only together with a
   * partition, and without tags.
   */
  readonly dueUntil?: number | undefined;
}

/** A part of a scan. */
export interface ScanPage {
  /** At most as many records as the limit. */
  readonly items: readonly StoredRecord[];
  /** Where the next part begins; undefined after the last one. A part may be empty before that. */
  readonly cursor: string | undefined;
  /** In a scan by `dueUntil`: how many records it found, also beyond the limit; at least up to `countTo`. */
  readonly total?: number | undefined;
}

/** A request for a lease. */
export interface LeaseClaim {
  /** Unique for each claim. */
  readonly owner: string;
  /** Milliseconds after which the lease is free, by the engine's clock, unless it is extended. */
  readonly ttlMs: number;
  /** Text of up to 16 KiB without U+0000 that others get to read. */
  readonly note: string;
}

/** The newest claim under a key. */
export interface LeaseTrace {
  /** The number of the claim: each one has a higher number than all before it under the same key. */
  readonly attempt: number;
  /** Whose claim it is. */
  readonly owner: string;
  /** Unix milliseconds by the engine's clock: when it was claimed. */
  readonly at: number;
  /** Unix milliseconds by the engine's clock: when this trace was read. */
  readonly now: number;
  /** Unix milliseconds by the engine's clock: when its owner released it; undefined if the owner did not. */
  readonly releasedAt: number | undefined;
  /** The note of the claim, of its newest extension or of its release. */
  readonly note: string;
}

/** The lease belongs to the caller. */
export interface LeaseHeld {
  /** True; false in a {@link LeaseBusy}. */
  readonly held: true;
  /** The number of this claim. */
  readonly attempt: number;
  /** The claim before, if its owner did not release it without a trace. */
  readonly previous: LeaseTrace | undefined;
}

/** The lease belongs to another owner. */
export interface LeaseBusy {
  /** False; true in a {@link LeaseHeld}. */
  readonly held: false;
  /** The claim that holds the lease. */
  readonly by: LeaseTrace;
  /** Milliseconds until it is free, unless its owner extends it. */
  readonly leftMs: number;
}

/** What a driver reports of its engine; a sentence in each list is for a person. */
export interface DriverHealth {
  /** Milliseconds by which the clock of this machine is ahead of the engine's. */
  readonly clockAheadMs: number;
  /** Why records may be lost although they were acknowledged. */
  readonly risks: readonly string[];
  /** Why the engine must not be used. */
  readonly errors: readonly string[];
  /** Facts such as the version of the engine. */
  readonly facts: Readonly<Record<string, string>>;
}

/**
 * An engine that holds the records of many machines, by atomic operations on texts that it cannot read. Codec, sealing,
 * leases, repair and caches are `grantStore`'s.
 *
 * Times are the engine's, never this machine's. Every operation fails with `AgentAuthError` `store_unavailable` (class
 * `unavailable`, retryable) if the engine does not respond or cannot be reached, and never waits longer than the timeout
 * that the driver was given. No message holds a credential.
 */
export interface StoreDriver {
  /** The engine, by the name that OpenTelemetry gives it (`db.system.name`): `redis`, `postgresql`. */
  readonly system: string;
  /** Where the engine is, as text for the user, without credentials. */
  readonly location: string;
  /** Reads a record, and sees every acknowledged write. */
  get(key: RecordKey, options?: DriverCallOptions): Promise<StoredRecord | undefined>;
  /**
   * Reads a record as `get`, and writes it again as it is, with its version: what would refuse a `put` of it refuses this,
   * such as a missing right, a full memory or a lock, before anything depends on that. Default: `get` is used.
   */
  touch?(key: RecordKey, options?: DriverCallOptions): Promise<StoredRecord | undefined>;
  /**
   * Stores a text if the stored version is `expected` (undefined: if there is no record).
   *
   * @returns the new version; undefined if another one is stored, and then nothing has changed
   */
  put(key: RecordKey, value: string, expected: Version | undefined, options?: PutOptions): Promise<Version | undefined>;
  /**
   * Removes a record, if it has this version (undefined: any).
   *
   * @returns true for exactly one of the callers that remove a record
   */
  delete(key: RecordKey, expected?: Version, options?: DriverCallOptions): Promise<boolean>;
  /**
   * Records of a kind, in parts. A record that is there from the first part to the last is returned exactly once; one that
   * is written or removed in between may be.
   *
   * @param page.countTo where a scan by `dueUntil` may stop to count. Default: it counts all
   */
  scan(
    filter: ScanFilter,
    page: {
      readonly limit: number;
      readonly cursor?: string | undefined;
      readonly countTo?: number | undefined;
    },
    options?: DriverCallOptions,
  ): Promise<ScanPage>;
  /** Takes the lease under a key, if it is free. A lease needs no record under its key, and none expires with it. */
  claim(key: RecordKey, claim: LeaseClaim, options?: DriverCallOptions): Promise<LeaseHeld | LeaseBusy>;
  /**
   * Extends a lease to `ttlMs` from now and replaces its note.
   *
   * @returns false if it belongs to another owner, was released, or has expired; nothing has changed then
   */
  extend(key: RecordKey, claim: LeaseClaim, options?: DriverCallOptions): Promise<boolean>;
  /**
   * Releases a lease; does nothing for an owner that does not hold it any more. The trace of a released or expired lease may
   * be forgotten after 30 days: until then it shows that an older record was put back.
   *
   * @param claim with `note` undefined no trace is left, and the next claim begins with none before it
   */
  release(
    key: RecordKey,
    claim: { readonly owner: string; readonly note: string | undefined },
    options?: DriverCallOptions,
  ): Promise<void>;
  /**
   * Reports written and removed records until the signal fires; it resolves then. Hints only: some may be missing.
   *
   * @param onGap changes may have been missed, for example because the connection was lost and is back
   */
  watch?(onChange: (key: RecordKey) => void, onGap: () => void, signal: AbortSignal): Promise<void>;
  /** Looks at the engine: its clock, its durability, its eviction. */
  health?(options?: DriverCallOptions): Promise<DriverHealth>;
}
