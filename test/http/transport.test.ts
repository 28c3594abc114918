import { describe, expect, it } from "vitest";
import type { AgentAuthError } from "../../src/errors.js";
import { shownUrl } from "../../src/http/address.js";
import type { HttpEvent } from "../../src/http/buffered-response.js";
import { requestIdOf } from "../../src/http/buffered-response.js";
import { FollowingController } from "../../src/http/deadline.js";
import { ownFetch } from "../../src/http/own-fetch.js";
import { createTransport, type Logger, type TransportOptions } from "../../src/http/transport.js";
import { FakeClock } from "../helpers/clock.js";
import { sendJson, startServer } from "../helpers/server.js";
import { rejection } from "../helpers/service.js";

const address = "https://agentauth.example/api/v1/pool";

describe("a transport", () => {
  it.each(["timeoutMs", "deadlineMs", "maxBodyBytes"] as const)("wants a positive %s", (name) => {
    for (const value of [0, -1, Number.NaN]) {
      expect(() => createTransport({ [name]: value })).toThrow(TypeError);
      expect(() => createTransport({ [name]: value })).toThrow(`${name} must be a positive number, not ${value}`);
    }
    expect(() => createTransport({ [name]: Number.POSITIVE_INFINITY })).not.toThrow();
  });

  it.each([-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY])("refuses %d retries", (maxRetries) => {
    const message = `maxRetries must be a whole number of at least 0, not ${maxRetries}`;
    expect(() => createTransport({ maxRetries })).toThrow(new TypeError(message));
  });

  it("sends a request without limits when configured so", async () => {
    const server = await startServer((response) => sendJson(response, { ok: true }));
    const none = Number.POSITIVE_INFINITY;
    const transport = createTransport({ timeoutMs: none, deadlineMs: none, maxBodyBytes: none });
    expect((await transport(new Request(server.origin))).json).toEqual({ ok: true });
  });

  it("finds the global fetch when it is needed, not when it is built", async () => {
    const transport = createTransport({});
    const original = globalThis.fetch;
    globalThis.fetch = async () => Response.json({ replaced: true });
    try {
      expect((await transport(new Request(address))).json).toEqual({ replaced: true });
    } finally {
      globalThis.fetch = original;
    }
  });

  it("gives a fetch of the user a signal of the runtime, and one of our own none that it has to make", async () => {
    const signals: unknown[] = [];
    const fetch: typeof globalThis.fetch = async (_input, init) => {
      signals.push(init?.signal);
      return Response.json({});
    };
    for (const one of [fetch, ownFetch((input, init) => fetch(input, init))]) {
      await createTransport({ fetch: one })(new Request(address));
    }
    expect(signals).toEqual([expect.any(AbortSignal), expect.any(FollowingController)]);
  });

  it("follows redirects within the origin, and returns them where it is told to", async () => {
    const server = await startServer((response, { url }) =>
      url === "/new" ? sendJson(response, { at: url }) : response.writeHead(307, { location: "/new" }).end(),
    );
    const to = (redirects?: "manual") =>
      createTransport({ ...(redirects && { redirects }) })(new Request(server.origin));
    expect([await to(), await to("manual")]).toMatchObject([{ status: 200, json: { at: "/new" } }, { status: 307 }]);
  });

  it("reports the query of a request decoded, and as it is where it cannot be", async () => {
    const queries: unknown[] = [];
    const onEvent = (event: HttpEvent) => void (event.type === "request" && queries.push(event.query));
    const transport = createTransport({ fetch: async () => Response.json({}), onEvent });
    for (const query of ["", "?a=%20b", "?a=%zz"]) await transport(new Request(`${address}${query}`));
    expect(queries).toEqual(["", "?a= b", "?a=%zz"]);
  });

  it("makes an error of what a fetch throws without a promise", async () => {
    const fetch: typeof globalThis.fetch = () => {
      throw new TypeError("not even begun");
    };
    const transport = createTransport({ fetch, maxRetries: 0 });
    expect(await rejection(transport(new Request(address)))).toMatchObject({ code: "network_failed" });
  });

  it("does not let the service set cookies or be asked with any", async () => {
    const server = await startServer((response) => sendJson(response, {}, 200, { "set-cookie": "session=1" }));
    const transport = createTransport({});
    await transport(new Request(server.origin));
    await transport(new Request(server.origin));
    expect(server.requests[1]?.headers.cookie).toBeUndefined();
  });
});

describe("the events of a transport", () => {
  async function setUp(options: TransportOptions) {
    const server = await startServer((response, _request, nth) =>
      nth === 1 ? response.destroy() : sendJson(response, {}, 200, { "x-request-id": "req_1" }),
    );
    const transport = createTransport({ clock: new FakeClock(), random: () => 0, ...options });
    const request = new Request(`${server.origin}/a?pagination%5Boffset%5D=5`, { headers: { "x-key": "canary-key" } });
    return { server, send: () => transport(request) };
  }

  it("report every request, answer and failure, in order, and never of a header or a body", async () => {
    const events: HttpEvent[] = [];
    const levels: string[] = [];
    const [debug, info, warn, error] = ["debug", "info", "warn", "error"].map((level) => () => void levels.push(level));
    const logger = { debug, info, warn, error } as Logger;
    const { server, send } = await setUp({ onEvent: (event) => events.push(event), logger });
    await send();
    expect(levels).toEqual(["debug", "warn", "warn", "debug", "debug"]);
    const about = { method: "GET", url: `${server.origin}/a` };
    expect(events).toMatchObject([
      { type: "request", ...about, query: "?pagination[offset]=5" },
      { type: "failure", ...about, code: "connection_reset", ms: 0 },
      { type: "retry", url: about.url, attempt: 2 },
      { type: "request", ...about },
      { type: "response", ...about, status: 200, ms: 0, requestId: "req_1" },
    ]);
    expect(JSON.stringify(events)).not.toContain("canary");
  });

  it("that the listener throws at end the call with what it threw, and are not taken for a failure of the network", async () => {
    for (const type of ["request", "failure", "response", "retry"]) {
      const bug = new RangeError("bug of the listener");
      let seen = 0;
      const { send } = await setUp({
        onEvent(event) {
          if (event.type !== type) return;
          seen++;
          throw bug;
        },
      });
      expect(await rejection(send())).toBe(bug);
      expect(seen).toBe(1);
    }
  });
});

describe("a request id", () => {
  it("is on the result and on the error", async () => {
    const server = await startServer((response, _request, nth) =>
      nth === 1
        ? sendJson(response, {}, 200, { "x-request-id": "req_ok" })
        : response.writeHead(200, { "content-type": "application/json", "x-request-id": "req_bad" }).end("{"),
    );
    const transport = createTransport({ maxRetries: 0 });
    expect((await transport(new Request(server.origin))).requestId).toBe("req_ok");
    const error = (await rejection(transport(new Request(server.origin)))) as AgentAuthError;
    expect(error.requestId).toBe("req_bad");
    expect(error.toJSON()).toMatchObject({ request_id: "req_bad", status: 200 });
  });

  it.each(["x-request-id", "request-id", "x-amzn-requestid", "x-correlation-id", "cf-ray"])(
    "may come in %s",
    (name) => {
      expect(requestIdOf(new Headers({ [name]: "r1" }))).toBe("r1");
    },
  );

  it("is cut when it is endless, and undefined when there is none", () => {
    expect(requestIdOf(new Headers({ "x-request-id": "r".repeat(5000) }))).toHaveLength(200);
    expect(requestIdOf(new Headers({ "x-request-id": "" }))).toBeUndefined();
  });
});

describe("an address that is shown", () => {
  it("has no user, password, query or fragment", () => {
    expect(shownUrl("https://user:pw@a.example:8443/p/q?token=t#f")).toBe("https://a.example:8443/p/q");
    expect(shownUrl("nonsense")).toBe("");
  });
});
