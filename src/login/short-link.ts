import { randomBytes } from "node:crypto";
import { sameSecret } from "./callback-parameters.js";

/** 12 characters: short enough for a line of 40 columns, and 2^72 paths to guess. */
const PATH_BYTES = 9;
/** This many requests for other paths indicate a search for the link; a browser sends one or two, for its icon. */
const MOST_MISSES = 50;

/**
 * A short address of the callback listener that leads to the login page, for a user who copies it from a terminal.
 *
 * The address of the login page has the `state`, and who knows the state can send a callback of another account. So the
 * path is a secret like the state: it is random, compared in constant time, and answered like any unknown path until it is
 * right. After 50 requests for unknown paths, the link stops working for the rest of the login: a program on this machine
 * that searches for it gets 50 attempts, and the user the long address instead.
 */
export class ShortLink {
  readonly path = `/${randomBytes(PATH_BYTES).toString("base64url")}`;
  #target: string | undefined;
  #misses = 0;
  #onWithdrawn: () => void = () => {};

  /** The address that it leads to; undefined where it leads nowhere. */
  get target(): string | undefined {
    return this.#target;
  }

  /**
   * Leads to an address from now on.
   *
   * @param onWithdrawn called once when the link stops working because something searches for it
   * @returns whether it does; not after it was withdrawn
   */
  leadTo(target: string, onWithdrawn: () => void): boolean {
    if (this.#misses >= MOST_MISSES) return false;
    this.#target = target;
    this.#onWithdrawn = onWithdrawn;
    return true;
  }

  /** Whether a path is that of the link, while it leads somewhere. */
  isAt(path: string): boolean {
    return this.#target !== undefined && sameSecret(path, this.path);
  }

  /** Counts a request for a path that does not exist. */
  miss(): void {
    if (this.#target === undefined || ++this.#misses < MOST_MISSES) return;
    this.#target = undefined;
    this.#onWithdrawn();
  }
}
