import type { Socket } from "node:net";

/** The maximum number of open connections. A browser needs one or two. */
const MAX_SOCKETS = 32;

/**
 * The open connections of a listener, never more than 32.
 *
 * A new connection closes the oldest, not the other way round: else a program that opens 32 idle connections
 * locks the browser out.
 */
export class SocketPool {
  readonly #open = new Set<Socket>();
  readonly #exempt = new Set<Socket>();
  #isDestroyed = false;

  add(socket: Socket): void {
    if (this.#isDestroyed) return void socket.destroy();
    this.#open.add(socket);
    socket.once("close", () => this.#remove(socket));
    if (this.#open.size > MAX_SOCKETS) this.#closeOldest();
  }

  /** Exempts a connection from being closed for a new one. */
  keepAlive(socket: Socket): void {
    if (this.#open.has(socket)) this.#exempt.add(socket);
  }

  /** Closes every connection, later ones too. */
  destroy(): void {
    this.#isDestroyed = true;
    for (const socket of this.#open) socket.destroy();
  }

  #closeOldest(): void {
    const oldest = [...this.#open].find((socket) => !this.#exempt.has(socket));
    if (oldest) this.#remove(oldest);
    oldest?.destroy();
  }

  #remove(socket: Socket): void {
    this.#open.delete(socket);
    this.#exempt.delete(socket);
  }
}
