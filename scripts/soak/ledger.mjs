// What the issuer saw: every token request with a refresh token, from its own log.

// These stand for the whole answer, so that nothing was done.
const NOT_DONE = /\b(status|reset-before|html|redirect|wrong-envelope)\b/;

/** The renewals that a sandbox was asked for, in order. */
export class Ledger {
  #requests;
  #read = 0;
  #entries = [];

  constructor(sandbox) {
    this.#requests = sandbox.requests;
  }

  /** Every request for a renewal so far, also those that are still to be answered. */
  all() {
    const fresh = this.#requests.total - this.#read;
    // The log drops old requests: callers must read it often enough.
    if (fresh > this.#requests.length) throw new Error("the request log was read too late");
    // What a request asks for stands in its body, which may still be on its way: the path is known at once.
    if (fresh > 0) this.#entries.push(...this.#requests.slice(-fresh).filter(({ path }) => path.endsWith("/token")));
    this.#read = this.#requests.total;
    return this.#entries.filter(({ operation }) => operation === undefined || operation === "refresh_token");
  }

  /** The requests that the issuer has answered with new tokens, whether or not the answer arrived. */
  rotations() {
    return this.all().filter(({ status, fault }) => status === 200 && !NOT_DONE.test(fault ?? ""));
  }

  /** The requests that the issuer refused: of a used refresh token, as there is no other reason here. */
  refusals() {
    return this.all().filter(({ status, fault }) => status === 400 && !NOT_DONE.test(fault ?? ""));
  }

  /** The requests that a fault struck. */
  struck() {
    return this.all().filter(({ fault }) => fault !== undefined);
  }

  /** Forgets what was counted so far. */
  clear() {
    this.all();
    this.#entries = [];
  }
}
