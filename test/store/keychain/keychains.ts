import { type Keychain, keychainError } from "../../../src/store/keychain/keychain.js";

/** A keychain in memory that records its calls. */
export interface FakeKeychain extends Keychain {
  /** `get` and `set`, in the order they came. */
  readonly calls: string[];
  /** What it holds. */
  value: string | undefined;
  /** Thrown by every call while it is set. */
  refusal: string | undefined;
}

/** A keychain with nothing in it. */
export function fakeKeychain(value?: string): FakeKeychain {
  const keychain: FakeKeychain = {
    calls: [],
    value,
    refusal: undefined,
    async get() {
      keychain.calls.push("get");
      if (keychain.refusal !== undefined) throw keychainError(new Error(keychain.refusal));
      return keychain.value;
    },
    async set(written) {
      keychain.calls.push("set");
      if (keychain.refusal !== undefined) throw keychainError(new Error(keychain.refusal));
      keychain.value = written;
    },
  };
  return keychain;
}
