import type { Clock } from "../../http/deadline.js";
import { type Grant, tokenGeneration } from "../../oauth/model/grant.js";
import { Lru } from "../lru.js";

const REMEMBERED_MS = 10 * 60_000;
const MAX_GRANTS = 1000;

/**
 * The newest generations that this process has saved or read. An engine that fails over to a replica, and a backup that is
 * restored, may have lost them; then they are put back.
 */
export class NewestGrants {
  readonly #newest = new Lru<{ grant: Grant; at: number }>(MAX_GRANTS);
  readonly #clock: Pick<Clock, "now">;

  constructor(clock: Pick<Clock, "now">) {
    this.#clock = clock;
  }

  remember(id: string, grant: Grant): void {
    if (this.#newerThan(id, grant) === undefined) this.#newest.set(id, { grant, at: this.#clock.now() });
  }

  forget(id: string): void {
    this.#newest.delete(id);
  }

  /** A generation that is newer than the stored one of the same login, and not too old to be put back. */
  newerThan(id: string, stored: Grant): Grant | undefined {
    const newer = this.#newerThan(id, stored);
    return newer && this.#clock.now() - newer.at <= REMEMBERED_MS ? newer.grant : undefined;
  }

  /** The newest generation of tokens of a login whose refresh token is used up, as far as this process knows. */
  spent(id: string, grant: Grant): number | undefined {
    const newest = this.#newest.get(id)?.grant;
    if (newest === undefined || newest.signedInAt !== grant.signedInAt) return undefined;
    const isRotated = newest.tokens.refreshToken?.reveal() !== grant.tokens.refreshToken?.reveal();
    return isRotated ? tokenGeneration(newest) - 1 : undefined;
  }

  #newerThan(id: string, stored: Grant): { grant: Grant; at: number } | undefined {
    const newest = this.#newest.get(id);
    if (newest === undefined || newest.grant.generation <= stored.generation) return undefined;
    const { grant } = newest;
    const isSameLogin = grant.signedInAt === stored.signedInAt && grant.issuer === stored.issuer;
    // After a failover another process may have refreshed from the older generation.
    const isLater = grant.tokens.obtainedAt >= stored.tokens.obtainedAt;
    return isSameLogin && isLater ? newest : undefined;
  }
}
