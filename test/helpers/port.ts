import { once } from "node:events";
import { createServer } from "node:net";

/** No server listens there: the port has no owner, and systems assign only ports above 1024. */
export const CLOSED_PORT = 2;

/**
 * A port where no server listens, from a range that the usual systems do not assign to others (Linux: from 32768, the rest:
 * from 49152).
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = 15_000 + Math.floor(Math.random() * 15_000);
    const server = createServer().listen({ port, host: "127.0.0.1", exclusive: true });
    const isFree = await once(server, "listening").then(
      () => true,
      () => false,
    );
    if (!isFree) continue;
    server.close();
    await once(server, "close");
    return port;
  }
}
