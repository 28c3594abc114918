import { describe, expect, it } from "vitest";
import { bearerAuth } from "../../src/api/auth.js";
import type { AgentAuthError } from "../../src/errors.js";
import { createTransport } from "../../src/http/transport.js";
import { Redactor } from "../../src/redact.js";
import { type Answer, sendJson, startServer } from "../helpers/server.js";
import { rejection } from "../helpers/service.js";

async function setUp(answer: Answer) {
  const server = await startServer(answer);
  const auth = bearerAuth("the-api-token", undefined, server.origin, new Redactor());
  const transport = createTransport({}, auth);
  const send = (init: RequestInit = {}) =>
    transport(new Request(`${server.origin}/start?pool_id=p`, { headers: { accept: "application/json" }, ...init }));
  return { server, send };
}

/** Redirects so often, then answers. */
function hops(count: number, status = 302): Answer {
  return (response, _request, nth) =>
    nth <= count
      ? response.writeHead(status, { location: `/hop/${nth}?a=${nth}` }).end("elsewhere")
      : sendJson(response, { nth });
}

describe("a redirect", () => {
  it.each([301, 302, 303, 307, 308])(
    "inside the origin is followed, with method and headers: HTTP %i",
    async (status) => {
      const { server, send } = await setUp(hops(3, status));
      const reply = await send();
      expect(reply.json).toEqual({ nth: 4 });
      expect(reply.url).toBe(`${server.origin}/hop/3?a=3`);
      expect(server.requests.map(({ method, url }) => `${method} ${url}`)).toEqual([
        "GET /start?pool_id=p",
        "GET /hop/1?a=1",
        "GET /hop/2?a=2",
        "GET /hop/3?a=3",
      ]);
      for (const { headers } of server.requests) {
        expect(headers).toMatchObject({ authorization: "Bearer the-api-token", accept: "application/json" });
      }
    },
  );

  it("is followed for HEAD too, but not for a request that may do something", async () => {
    const { server, send } = await setUp((response, _request, nth) =>
      nth === 1 ? response.writeHead(302, { location: "/next" }).end() : sendJson(response, {}),
    );
    expect((await send({ method: "HEAD" })).status).toBe(200);
    expect(server.requests.map(({ method, url }) => `${method} ${url}`)).toEqual([
      "HEAD /start?pool_id=p",
      "HEAD /next",
    ]);
    const other = await setUp((response) => response.writeHead(302, { location: "/next" }).end());
    expect(await rejection(other.send({ method: "DELETE" }))).toMatchObject({ code: "redirect_refused" });
    expect(other.server.requests).toHaveLength(1);
  });

  it("is refused at the fourth hop, and a loop with it", async () => {
    for (const answer of [
      hops(99),
      ((response) => response.writeHead(302, { location: "?" }).end()) satisfies Answer,
    ]) {
      const { server, send } = await setUp(answer);
      const error = (await rejection(send())) as AgentAuthError;
      expect(error).toMatchObject({ code: "redirect_refused", class: "refused", retryable: false, status: 302 });
      expect(error.message).toContain("more than 3 redirects");
      expect(server.requests).toHaveLength(4);
    }
  });

  it.each([301, 302, 303, 307, 308])(
    "off the origin is refused, and nothing is sent there: HTTP %i",
    async (status) => {
      const other = await startServer((response) => sendJson(response, { stolen: true }));
      const { server, send } = await setUp((response) =>
        response.writeHead(status, { location: `${other.origin}/x` }).end(),
      );
      const error = (await rejection(send())) as AgentAuthError;
      expect(error).toMatchObject({ code: "redirect_refused", class: "refused", retryable: false });
      expect(error.message).toContain(`from ${server.origin} to "${other.origin}"`);
      expect(server.requests).toHaveLength(1);
      expect(other.requests).toEqual([]);
    },
  );

  it("off the origin is refused as well after one inside it", async () => {
    const other = await startServer((response) => sendJson(response, {}));
    const { server, send } = await setUp((response, _request, nth) =>
      response.writeHead(307, { location: nth === 1 ? "/next" : `//${new URL(other.origin).host}/` }).end(),
    );
    expect(await rejection(send())).toMatchObject({ code: "redirect_refused" });
    expect(server.requests).toHaveLength(2);
    expect(other.requests).toEqual([]);
  });

  it("to another scheme, port or name of the same machine is off the origin", async () => {
    for (const change of ["https:", "localhost", "file:///etc/passwd", "data:application/json,{}"]) {
      const { server, send } = await setUp((response, request) => {
        const { host = "" } = request.headers;
        const to =
          change === "https:"
            ? `https://${host}/`
            : change === "localhost"
              ? `http://localhost${host.slice(9)}/`
              : change;
        response.writeHead(302, { location: to }).end();
      });
      expect(await rejection(send())).toMatchObject({ code: "redirect_refused" });
      expect(server.requests).toHaveLength(1);
    }
  });

  it("to no address, or to one with a password, is refused without the password", async () => {
    for (const [location, said] of [
      ["http://", "not an address"],
      ["http://user:hunter22@{host}/x", "user name or password"],
    ] as const) {
      const { send } = await setUp((response, request) =>
        response.writeHead(302, { location: location.replace("{host}", request.headers.host ?? "") }).end(),
      );
      const error = (await rejection(send())) as AgentAuthError;
      expect(error.code).toBe("redirect_refused");
      expect(error.message).toContain(said);
      expect(error.message).not.toContain("hunter22");
    }
  });

  it("never shows the query of its target, which may hold a token", async () => {
    const { send } = await setUp((response) => response.writeHead(302, { location: "/x?access_token=hunter22" }).end());
    expect(((await rejection(send())) as AgentAuthError).message).not.toContain("hunter22");
  });

  it("of a POST is refused", async () => {
    for (const status of [301, 303, 308]) {
      const { server, send } = await setUp(hops(1, status));
      const error = (await rejection(send({ method: "POST", body: "{}" }))) as AgentAuthError;
      expect(error).toMatchObject({ code: "redirect_refused", status });
      expect(error.message).toContain("POST");
      expect(server.requests).toHaveLength(1);
    }
  });

  it("without a target, or of a status that is none, is an answer like any other", async () => {
    for (const [status, headers] of [
      [302, {}],
      [300, { location: "/x" }],
      [304, { location: "/x" }],
    ] as const) {
      const { server, send } = await setUp((response) => response.writeHead(status, headers).end());
      expect((await send()).status).toBe(status);
      expect(server.requests).toHaveLength(1);
    }
  });

  it("that a browser hides is refused", async () => {
    const hidden = Object.defineProperty(new Response(null, { status: 200 }), "type", { value: "opaqueredirect" });
    const transport = createTransport({ fetch: async () => hidden });
    expect(await rejection(transport(new Request("https://agentauth.example")))).toMatchObject({
      code: "redirect_refused",
    });
  });
});
