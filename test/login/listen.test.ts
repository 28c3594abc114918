import { createServer } from "node:net";
import { describe, expect, it } from "vitest";
import { reserveRedirect } from "../../src/login/listen.js";

const portOf = (uri: string) => Number(new URL(uri).port);

describe("the port of a redirect address without a listener", () => {
  it("is one that the system assigns to no connection, and is free", async () => {
    for (let nth = 0; nth < 5; nth++) {
      const port = portOf(await reserveRedirect({}));
      expect(port).toBeGreaterThanOrEqual(15_000);
      expect(port).toBeLessThan(30_000);
      const server = createServer().listen(port, "127.0.0.1");
      await new Promise((resolve, reject) => server.once("listening", resolve).once("error", reject));
      await new Promise((resolve) => server.close(resolve));
    }
  });

  it("is that of the earlier registration where that is free, and the given one in any case", async () => {
    const preferred = await reserveRedirect({});
    expect(await reserveRedirect({ preferred })).toBe(preferred);
    const server = createServer().listen(portOf(preferred), "127.0.0.1");
    await new Promise((resolve) => server.once("listening", resolve));
    expect(await reserveRedirect({ preferred })).not.toBe(preferred);
    expect(portOf(await reserveRedirect({ port: portOf(preferred) }))).toBe(portOf(preferred));
    await new Promise((resolve) => server.close(resolve));
  });
});
