// The network between a process and its engine, which a trial can cut.
import { once } from "node:events";
import { connect, createServer } from "node:net";

/**
 * Forwards connections on loopback to an engine.
 *
 * @param target a port of loopback, or the path of a socket
 */
export async function startProxy(target) {
  const proxy = new Network(target);
  await proxy.listen();
  return proxy;
}

class Network {
  #server;
  #target;
  #pairs = new Set();
  #isCut = false;

  constructor(target) {
    this.#target = target;
    this.#server = createServer((client) => this.#forward(client));
  }

  async listen() {
    await once(this.#server.listen(0, "127.0.0.1"), "listening");
    this.port = this.#server.address().port;
  }

  /** From here on nothing arrives, in both directions: like a cable that is pulled, it closes no connection. */
  cut() {
    this.#isCut = true;
    for (const { sockets } of this.#pairs) for (const socket of sockets) socket.pause();
  }

  /** What was sent in between arrives. */
  mend() {
    this.#isCut = false;
    for (const { sockets, isForgotten } of this.#pairs) {
      if (!isForgotten) for (const socket of sockets) socket.resume();
    }
  }

  /** Nothing arrives over the present connections any more, as after a NAT has forgotten them; new ones work. */
  forget() {
    for (const pair of this.#pairs) {
      pair.isForgotten = true;
      for (const socket of pair.sockets) socket.pause();
    }
  }

  close() {
    for (const { sockets } of this.#pairs) for (const socket of sockets) socket.destroy();
    this.#server.close();
  }

  #forward(client) {
    const engine = connect(typeof this.#target === "number" ? { port: this.#target, host: "127.0.0.1" } : this.#target);
    const sockets = [client, engine];
    const pair = { sockets, isForgotten: false };
    this.#pairs.add(pair);
    for (const [from, to] of [sockets, [engine, client]]) {
      from.on("data", (data) => to.write(data));
      from.on("end", () => to.end());
      from.on("error", () => {});
      from.on("close", () => {
        to.destroy();
        this.#pairs.delete(pair);
      });
      if (this.#isCut) from.pause();
    }
  }
}
