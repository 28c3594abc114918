import { isRequest, isResponse, type RpcId, type RpcMessage } from "./rpc.js";

/**
 * Keeps the order that a pipe has and separate HTTP requests have not, where it matters: what follows `initialize` and
 * `notifications/initialized` waits until the server has taken those. Answers pass, for the server may wait for them.
 */
export class Handshake {
  readonly #forward: (message: RpcMessage) => void;
  #steps = 0;
  #held: RpcMessage[] = [];

  constructor(forward: (message: RpcMessage) => void) {
    this.#forward = forward;
  }

  /** Forwards a message, at once or when its turn comes. */
  pass(message: RpcMessage): void {
    if (this.#steps > 0 && !isResponse(message)) this.#held.push(message);
    else this.#forward(message);
  }

  /** Begins a step that what follows waits for; what it gives ends the step. */
  begin(): () => void {
    this.#steps += 1;
    let isOver = false;
    return () => {
      if (isOver) return;
      isOver = true;
      this.#steps -= 1;
      this.#release();
    };
  }

  /** Forgets a request that waits; undefined where none does. */
  drop(id: unknown): RpcMessage | undefined {
    const found = this.#held.find((message) => isRequest(message) && message.id === (id as RpcId));
    if (found) this.#held = this.#held.filter((message) => message !== found);
    return found;
  }

  /** Whether nothing waits. */
  get isIdle(): boolean {
    return this.#held.length === 0;
  }

  /** Takes away everything that waits. */
  clear(): RpcMessage[] {
    return this.#held.splice(0);
  }

  #release(): void {
    while (this.#steps === 0) {
      const next = this.#held.shift();
      if (next === undefined) return;
      this.#forward(next);
    }
  }
}
