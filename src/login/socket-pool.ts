import type { Socket } from "node:net";

/** Connections at one time. A browser needs one or two. */
const MAX_SOCKETS = 32;

/**
 * The open connections of a listener, never more than 32.
 *
 * The oldest makes room for a new one, not the other way round: else whoever opens 32 connections and says nothing
 * keeps the browser out.
 */
export class SocketPool {
  readonly #open = new Set<Socket>();
  readonly #held = new Set<Socket>();
  #isDestroyed = false;

  add(socket: Socket): void {
    if (this.#isDestroyed) return void socket.destroy();
    this.#open.add(socket);
    socket.once("close", () => this.#forget(socket));
    if (this.#open.size > MAX_SOCKETS) this.#endOldest();
  }

  /** Exempts a connection from those that are ended to make room. */
  keepAlive(socket: Socket): void {
    if (this.#open.has(socket)) this.#held.add(socket);
  }

  /** Ends every connection, also those still to come. */
  destroy(): void {
    this.#isDestroyed = true;
    for (const socket of this.#open) socket.destroy();
  }

  #endOldest(): void {
    for (const socket of this.#open) {
      if (this.#held.has(socket)) continue;
      this.#forget(socket);
      socket.destroy();
      return;
    }
  }

  #forget(socket: Socket): void {
    this.#open.delete(socket);
    this.#held.delete(socket);
  }
}
