import { AgentAuthError } from "../../errors.js";
import type { Clock } from "../../http/deadline.js";

/** The refreshes of a client that have begun and not ended: the issuer may have obeyed each of them. */
export class PendingRefreshes {
  readonly #pending = new Set<Promise<unknown>>();
  #isClosed = false;

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Begins a refresh. @throws `AgentAuthError` `aborted` once the client is closed */
  async run<T>(refresh: () => Promise<T>): Promise<T> {
    if (this.#isClosed) {
      const message = "the client is closed: it refreshes no token any more";
      throw new AgentAuthError("aborted", message, { class: "aborted" });
    }
    const work = refresh();
    this.add(work);
    return work;
  }

  /** Adds what remains to be done of a refresh. */
  add(work: Promise<unknown>): void {
    this.#pending.add(work);
    const end = () => void this.#pending.delete(work);
    work.then(end, end);
  }

  /** Lets no other one begin. @returns whether those that have begun ended in time */
  async close(graceMs: number, clock: Pick<Clock, "sleep">): Promise<boolean> {
    this.#isClosed = true;
    const over = new AbortController();
    const late = clock.sleep(graceMs, over.signal).then(
      () => false,
      () => true,
    );
    const ended = async () => {
      while (this.#pending.size > 0) await Promise.allSettled(this.#pending);
      return true;
    };
    const isDone = await Promise.race([ended(), late]);
    over.abort();
    return isDone;
  }
}
