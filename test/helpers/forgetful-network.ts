import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/** A network before a server, which can forget its connections as a NAT does. */
export interface ForgetfulNetwork {
  readonly port: number;
  /** Nothing arrives over the present connections any more, and none is closed; new ones work. */
  forget(): void;
  close(): void;
}

/** @param target a port of loopback, or the path of a socket */
export async function startNetwork(target: number | string): Promise<ForgetfulNetwork> {
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const behind = typeof target === "number" ? connect(target, "127.0.0.1") : connect(target);
    for (const [from, to] of [
      [client, behind],
      [behind, client],
    ] as const) {
      sockets.add(from);
      from.on("data", (data) => to.write(data));
      from.on("error", () => {});
      from.on("close", () => to.destroy());
    }
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  return {
    port: (server.address() as AddressInfo).port,
    forget() {
      for (const socket of sockets) socket.pause();
    },
    close() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}
