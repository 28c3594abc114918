// The issuer's log of token requests with a refresh token.

// These faults replace the whole response, so that the request is not processed.
const NOT_DONE = /\b(status|reset-before|html|redirect|wrong-envelope)\b/;

/** The refreshes that a sandbox received, in order. */
export class Ledger {
  #requests;
  #read = 0;
  #entries = [];

  constructor(sandbox) {
    this.#requests = sandbox.requests;
  }

  /** Every refresh so far, also those without a response yet. */
  all() {
    const fresh = this.#requests.total - this.#read;
    // The log drops old requests: callers must read it often enough.
    if (fresh > this.#requests.length) throw new Error("the request log was read too late");
    // The grant type is in the body, which may still be in transit; the path is known at once.
    if (fresh > 0) this.#entries.push(...this.#requests.slice(-fresh).filter(({ path }) => path.endsWith("/token")));
    this.#read = this.#requests.total;
    return this.#entries.filter(({ operation }) => operation === undefined || operation === "refresh_token");
  }

  /** The requests that the issuer answered with new tokens, whether or not the response arrived. */
  rotations() {
    return this.all().filter(({ status, fault }) => status === 200 && !NOT_DONE.test(fault ?? ""));
  }

  /** The requests that the issuer rejected: here always for a used refresh token. */
  refusals() {
    return this.all().filter(({ status, fault }) => status === 400 && !NOT_DONE.test(fault ?? ""));
  }

  /** The requests that triggered a fault. */
  struck() {
    return this.all().filter(({ fault }) => fault !== undefined);
  }

  /** Forgets what was counted so far. */
  clear() {
    this.all();
    this.#entries = [];
  }
}
