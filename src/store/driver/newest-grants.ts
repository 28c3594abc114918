import type { Clock } from "../../http/deadline.js";
import type { Grant } from "../../oauth/grant/grant.js";
import { Lru } from "./lru.js";

const REMEMBERED_MS = 10 * 60_000;
const MAX_GRANTS = 1000;

/**
 * The generations that this process saved last. An engine that fails over to a replica may have lost them, although it
 * had acknowledged them; then they are put back.
 */
export class NewestGrants {
  readonly #saved = new Lru<{ grant: Grant; at: number }>(MAX_GRANTS);
  readonly #clock: Pick<Clock, "now">;

  constructor(clock: Pick<Clock, "now">) {
    this.#clock = clock;
  }

  remember(id: string, grant: Grant): void {
    this.#saved.set(id, { grant, at: this.#clock.now() });
  }

  forget(id: string): void {
    this.#saved.delete(id);
  }

  /** A generation that this process saved, if it is newer than the stored one of the same login. */
  newerThan(id: string, stored: Grant): Grant | undefined {
    const saved = this.#saved.get(id);
    if (saved === undefined || saved.grant.generation <= stored.generation) return undefined;
    if (this.#clock.now() - saved.at > REMEMBERED_MS) return undefined;
    const { grant } = saved;
    const isSameLogin = grant.signedInAt === stored.signedInAt && grant.issuer === stored.issuer;
    // After a failover another process may have refreshed from the older generation.
    const isLater = grant.tokens.obtainedAt >= stored.tokens.obtainedAt;
    return isSameLogin && isLater ? grant : undefined;
  }
}
