import { createServer } from "node:http";
import { describe, expect } from "vitest";
import { createService } from "./introspection-service.js";
import { listening } from "./listening.js";
import { assemble, it as base, CHALLENGED, INTROSPECTION, makeKey, outcome, REFUSED } from "./support.js";

const it = base.extend({ options: { introspection: INTROSPECTION } });

describe("the challenge (V13)", () => {
  const SPOOFED = {
    host: "evil.example",
    "x-forwarded-host": "evil.example",
    "x-forwarded-proto": "http",
    "x-original-url": "/evil",
    forwarded: "host=evil.example;proto=http",
    origin: "https://evil.example",
  };

  it("names the configured resource, whatever a request says of hosts", async ({ server }) => {
    const handler = server.protect(() => new Response("in"));
    const response = await handler(new Request("https://evil.example/mcp", { headers: SPOOFED }));
    expect(outcome(response)).toEqual([401, CHALLENGED]);
    const document = await handler(new Request(`https://evil.example${server.metadataPath}`, { headers: SPOOFED }));
    expect(await document.text()).not.toContain("evil");
  });

  it("does so too from Node's http", async ({ server }) => {
    const guard = server.middleware();
    const origin = await listening(createServer((request, response) => guard(request, response, () => response.end())));
    const { hostname, port } = new URL(origin);
    const { request } = await import("node:http");
    const seen = await new Promise<string[]>((resolve, reject) => {
      const sent = request({ hostname, port, path: "/mcp", headers: SPOOFED }, (answer) => {
        answer.resume();
        resolve([String(answer.statusCode), String(answer.headers["www-authenticate"])]);
      });
      sent.on("error", reject).end();
    });
    expect(seen).toEqual(["401", CHALLENGED]);
  });
});

describe("a refusal (V14)", () => {
  it("is the same to the letter whichever rule a token breaks, and the log distinguishes them without the token", async ({
    server,
    signer,
  }) => {
    const other = await makeKey();
    createService(signer, { "opaque-canary-0001": signer.claims({ aud: "other" }) });
    const tokens = [
      await signer.sign({}, { kid: "other" }),
      await signer.sign({ aud: "other" }),
      await signer.sign({ iss: "other" }),
      await signer.sign({ exp: 1 }),
      await signer.sign({}, {}, other),
      await signer.sign({}, { typ: "JWT" }),
      assemble({ alg: "none" }, signer.claims()),
      "opaque-canary-0001",
      "opaque-canary-0002",
      "a,b",
    ];
    const answers = new Set<string>();
    for (const token of tokens) {
      const response = await server.ask(token);
      const headers = JSON.stringify([...response.headers]);
      answers.add(`${response.status} ${headers} ${await response.text()}`);
      expect(outcome(response)).toEqual([401, REFUSED]);
    }
    expect(answers.size).toBe(1);
    expect(server.reasons()).toEqual([
      ...["key", "audience", "issuer", "expired", "signature", "typ", "algorithm"],
      ...["audience", "inactive", "malformed"],
    ]);
    const log = JSON.stringify(server.log);
    expect(tokens.filter((token) => token.length > 5 && log.includes(token))).toEqual([]);
    expect(log).not.toMatch(/eyJ|canary/);
  });

  it("is the same error for a program too", async ({ server, signer }) => {
    const errors = await Promise.all(
      [await signer.sign({ aud: "other" }), await signer.sign({ exp: 1 }), "x"].map((token) =>
        server.verify(token).catch((error: unknown) => JSON.stringify([error, String(error)])),
      ),
    );
    expect(new Set(errors).size).toBe(1);
    expect(errors[0]).toContain("the access token was not accepted");
  });

  it("logs what a token says with nothing in it that acts on a terminal", async ({ server, signer }) => {
    await server.ask(await signer.sign({ aud: "\u001b[31m\nother\u202e" }));
    expect(server.log[0]).toMatchObject({ detail: expect.stringContaining("\\e[31m\\nother\\u{202e}") });
  });
});
