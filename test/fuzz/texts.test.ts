import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parseStrictJson, StrictJsonError } from "../../src/http/strict-json.js";
import { checkPaste } from "../../src/login/paste.js";
import { checkCallback, type PreparedLogin } from "../../src/oauth/login/authorization.js";
import { decodeLogin, encodeLogin } from "../../src/oauth/login/login-codec.js";
import { bearerChallenge, parseChallenges } from "../../src/oauth/model/challenge.js";
import { CodecError, decodeClient, decodeGrant, encodeClient, encodeGrant } from "../../src/oauth/model/codec.js";
import { parseScope } from "../../src/oauth/model/scope.js";
import { isProfileKey } from "../../src/profile/profile-settings.js";
import { readConfig } from "../../src/profile/settings-file.js";
import { Secret } from "../../src/redact.js";
import { parseFault } from "../../src/sandbox/faults/check-fault.js";
import { FAULT_KINDS } from "../../src/sandbox/faults/faults.js";
import { temporaryFolder } from "../helpers/folder.js";
import { madeClient, madeGrant } from "../helpers/grant.js";
import { serverMetadata } from "../helpers/issuer.js";
import { fc } from "../helpers/properties.js";
import { CANARY, documentLike, edited, SETTINGS, textLike, tried } from "./inputs.js";

describe("a challenge", () => {
  const valid = [
    'Bearer resource_metadata="https://mcp.example/.well-known/oauth-protected-resource", scope="a b"',
    'Basic realm="a, b", Bearer error="insufficient_scope", scope="x \\"y\\"", DPoP algs="ES256"',
    "Negotiate dG9rZW42OA==, bearer realm=x",
  ];

  it("of any text is read without failing, and holds nothing but names and texts", () => {
    fc.assert(
      fc.property(textLike(...valid), (field) => {
        const outcome = tried(
          () => parseChallenges(field),
          () => false,
        );
        for (const { scheme, params } of "value" in outcome ? outcome.value : []) {
          expect(scheme).toMatch(/^[!#$%&'*+.^_`|~0-9a-z-]+$/);
          for (const [name, values] of params) {
            expect(name).toMatch(/^[!#$%&'*+.^_`|~0-9a-z-]+$/);
            expect(values.length).toBeGreaterThan(0);
          }
        }
      }),
      SETTINGS,
    );
  });

  it("that is well-formed is read as it was written", () => {
    const token = fc.stringMatching(/^[a-z][a-z0-9_-]{0,10}$/);
    const param = fc.tuple(token, fc.string({ unit: "grapheme-ascii", maxLength: 20 }));
    const challenge = fc.tuple(
      token,
      fc.uniqueArray(param, { selector: ([name]) => name, minLength: 1, maxLength: 4 }),
    );
    fc.assert(
      fc.property(fc.array(challenge, { minLength: 1, maxLength: 3 }), (challenges) => {
        const quoted = (text: string) => `"${text.replace(/["\\]/g, "\\$&")}"`;
        const field = challenges
          .map(
            ([scheme, params]) => `${scheme} ${params.map(([name, value]) => `${name}=${quoted(value)}`).join(", ")}`,
          )
          .join(", ");
        const read = parseChallenges(field).map(({ scheme, params }) => [
          scheme,
          [...params].map(([n, v]) => [n, v[0]]),
        ]);
        expect(read).toEqual(challenges);
      }),
      SETTINGS,
    );
  });

  it("in any header gives addresses, scopes and errors as texts", () => {
    fc.assert(
      fc.property(textLike(...valid), (text) => {
        const value = text.replace(/[^\x20-\x7e\x80-\xff]/g, "").trim();
        tried(
          () => bearerChallenge(new Headers({ "www-authenticate": value })),
          () => false,
        );
      }),
      SETTINGS,
    );
  });
});

describe("strict JSON", () => {
  const valid = [
    '{"a":[1,2.5e3,"x\\u0041",null,true],"b":{"c":{}}}',
    '[{"__proto__":1},{"a":-0}]',
    '"\\ud83e\\udd8a"',
    "0",
  ];
  const isJson = (error: unknown) => error instanceof StrictJsonError;

  it("takes nothing that JSON.parse refuses, and reads what it takes as JSON.parse does", () => {
    fc.assert(
      fc.property(textLike(...valid), (text) => {
        const outcome = tried(() => parseStrictJson(text), isJson);
        if ("value" in outcome) expect(JSON.stringify(outcome.value)).toBe(JSON.stringify(JSON.parse(text)));
      }),
      SETTINGS,
    );
  });

  it("takes every text that has each name once, is not too deep and has numbers that can be", () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 8 }), fc.constantFrom(0, 2), (value, indent) => {
        const text = JSON.stringify(value, null, indent);
        expect(JSON.stringify(parseStrictJson(text))).toBe(JSON.stringify(value));
      }),
      SETTINGS,
    );
  });

  it("refuses a name that comes twice, however it is spelt", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), fc.jsonValue(), (name, value) => {
        const escaped = `"${[...name]
          .flatMap((one) => one.split(""))
          .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)
          .join("")}"`;
        const text = `{${JSON.stringify(name)}:${JSON.stringify(value)},${escaped}:1}`;
        expect(() => parseStrictJson(text)).toThrow(StrictJsonError);
      }),
      SETTINGS,
    );
  });
});

describe("scopes", () => {
  it("are tokens, few, and each once", () => {
    fc.assert(
      fc.property(fc.oneof(textLike("tools offline_access", "a b c"), fc.jsonValue()), (value) => {
        const outcome = tried(() => parseScope(value, "scope", "a test"));
        if (!("value" in outcome)) return;
        expect(outcome.value.length).toBeLessThanOrEqual(64);
        expect(new Set(outcome.value).size).toBe(outcome.value.length);
        for (const token of outcome.value) expect(token).toMatch(/^[\x21\x23-\x5b\x5d-\x7e]{1,256}$/);
      }),
      SETTINGS,
    );
  });
});

const STATE = "state-of-this-sign-in";
const REDIRECT = "http://127.0.0.1:49152/callback";
const ISSUER = "https://as.example/pool";
const QUERIES = [
  `code=${CANARY}&state=${STATE}&iss=${encodeURIComponent(ISSUER)}`,
  `code=${CANARY}&state=${STATE}`,
  `error=access_denied&error_description=no&state=${STATE}&iss=${encodeURIComponent(ISSUER)}`,
];

describe("a callback", () => {
  it.each([true, false])(
    "is taken with our state, the right issuer and a code only (iss promised: %s)",
    (promisesIss) => {
      const issuer = { issuer: ISSUER, promisesIss };
      const login = { issuer, client: { clientId: "client" }, pending: { state: STATE } } as PreparedLogin;
      fc.assert(
        fc.property(textLike(...QUERIES), (query) => {
          const parameters = new URLSearchParams(query);
          // What stands in another member's place is no secret any more.
          const known = [...parameters]
            .filter(([name]) => name !== "code")
            .some((pair) => pair.join().includes("canary"));
          if (known) return;
          const outcome = tried(() => checkCallback(login, parameters));
          if (!("value" in outcome)) return;
          expect(parameters.getAll("state")).toEqual([STATE]);
          expect(outcome.value.get("code")).toBeTruthy();
          expect(parameters.get("error") ?? "").toBe("");
          expect(parameters.getAll("iss")).toEqual(promisesIss || parameters.has("iss") ? [ISSUER] : []);
        }),
        SETTINGS,
      );
    },
  );

  it("that is pasted is judged without failing, and what was pasted is not repeated", () => {
    const lines = [
      ...QUERIES.map((query) => `${REDIRECT}?${query}`),
      `<${REDIRECT}?${QUERIES[0]}>`,
      CANARY,
      QUERIES[0] ?? "",
    ];
    const loginUrl = "https://as.example/authorize?x=1";
    fc.assert(
      fc.property(textLike(...lines), fc.boolean(), (line, allowBareCode) => {
        const rules = { redirectUri: REDIRECT, state: STATE, loginUrl, allowBareCode };
        const outcome = tried(
          () => checkPaste(line, rules),
          () => false,
        );
        const verdict = "value" in outcome ? outcome.value : undefined;
        if (verdict === undefined) return;
        if ("reason" in verdict) expect(verdict.reason).not.toContain(CANARY);
        if (!("parameters" in verdict)) return;
        expect(verdict.parameters.getAll("state")).toEqual([STATE]);
      }),
      SETTINGS,
    );
  });
});

describe("a settings file", () => {
  const home = temporaryFolder();
  mkdirSync(home, { recursive: true });
  const valid = {
    schema: 1,
    profile: "work",
    profiles: {
      work: { base_url: "https://agentauth.example", api_token: "env:TOKEN", output: "json", store: "file", pool: "p" },
    },
  };

  it("of any text is read as settings that can be, or refused with a reason", () => {
    fc.assert(
      fc.property(documentLike(valid), (text) => {
        writeFileSync(join(home, "config.json"), text);
        const outcome = tried(() => readConfig(home));
        if ("error" in outcome) expect(outcome.error).toMatchObject({ class: "usage" });
        if (!("value" in outcome)) return;
        for (const settings of Object.values(outcome.value.profiles)) {
          expect(Object.keys(settings).every(isProfileKey)).toBe(true);
          if (settings.base_url !== undefined)
            expect(settings.base_url).toMatch(/^(?:https:|http:\/\/(?:127\.|localhost|\[))/i);
          if (settings.api_token !== undefined) expect(settings.api_token).toMatch(/^(?:env|file):/);
        }
      }),
      SETTINGS,
    );
  });
});

describe("what is stored", () => {
  const secret = new Secret(CANARY);
  const client = madeClient({ clientSecret: secret });
  const tokens = { ...madeGrant().tokens, accessToken: secret, refreshToken: secret, idToken: secret };
  const grant = JSON.parse(encodeGrant(madeGrant({ client, tokens }))) as Record<string, unknown>;
  const issuer = serverMetadata();
  const login = encodeLogin({
    profile: "default",
    server: "https://mcp.example/mcp",
    account: "work",
    issuer,
    client: { ...client, issuer: issuer.issuer, registeredAt: [1] },
    scope: ["tools", "offline_access"],
    addedScope: ["offline_access"],
    resource: "https://mcp.example/mcp",
    overrides: [],
    proofKey: undefined,
    pending: {
      authorizationUrl: issuer.authorizationEndpoint,
      redirectUri: client.redirectUri ?? "",
      state: "s",
      verifier: secret,
    },
  });
  const isCodec = (error: unknown) => error instanceof CodecError;

  it("is read where nothing was changed", () => {
    expect(decodeGrant(JSON.stringify(grant)).server).toBe(madeGrant().server);
    expect(decodeLogin(login).server).toBe("https://mcp.example/mcp");
  });

  it.each([
    ["grant", documentLike(grant), decodeGrant],
    ["client", documentLike(JSON.parse(encodeClient(client)) as Record<string, unknown>), decodeClient],
    ["login", documentLike(JSON.parse(login) as Record<string, unknown>), decodeLogin],
  ] as const)("as a %s is read, or refused without a word of its secrets", (_what, texts, decode) => {
    fc.assert(
      fc.property(texts, (text) => {
        const outcome = tried<object>(() => decode(text), isCodec);
        if ("value" in outcome) expect(JSON.stringify(outcome.value)).not.toContain(CANARY);
      }),
      SETTINGS,
    );
  });
});

describe("a fault", () => {
  it("of any text is one that the sandbox knows, or refused", () => {
    const valid = [
      "503",
      "status=429:times=3,retry-after=2",
      "reset-mid-body:probability=0.2",
      '{"kind":"html","after":1}',
    ];
    fc.assert(
      fc.property(fc.oneof(textLike(...valid), edited(fc.constantFrom(...Object.keys(FAULT_KINDS)))), (text) => {
        const outcome = tried(() => parseFault(text));
        if ("error" in outcome) expect(outcome.error).toMatchObject({ class: "usage" });
        if (!("value" in outcome)) return;
        expect(Object.keys(FAULT_KINDS)).toContain(outcome.value.kind);
      }),
      SETTINGS,
    );
  });
});
