import { describe, expect, it } from "vitest";
import {
  type ClientKey,
  chosenMethod,
  clientAuth,
  type PreRegisteredClient,
  preferredMethod,
  preRegisteredClient,
  type SigningAlgorithm,
  withOtherForms,
} from "../../../src/oauth/client/client-auth.js";
import type { AuthMethod } from "../../../src/oauth/model/grant.js";
import { Secret } from "../../../src/redact.js";
import { clientKey } from "../../helpers/client-keys.js";
import { madeClient } from "../../helpers/grant.js";
import { serverMetadata } from "../../helpers/issuer.js";

const AS = { issuer: "https://as.example/pool" } as never;

/** What a client adds to a request. */
async function added(client: ReturnType<typeof madeClient>, key?: ClientKey) {
  const [body, headers] = [new URLSearchParams(), new Headers()];
  await clientAuth(client, key)(AS, { client_id: client.clientId } as never, body, headers);
  return { body: Object.fromEntries(body), headers: Object.fromEntries(headers) };
}

describe("a client authenticates", () => {
  it.each<[AuthMethod, object]>([
    ["none", { body: { client_id: "client-1" }, headers: {} }],
    ["client_secret_basic", { body: {}, headers: { authorization: `Basic ${btoa("client-1:client-secret-1")}` } }],
    ["client_secret_post", { body: { client_id: "client-1", client_secret: "client-secret-1" }, headers: {} }],
  ])("by %s", async (authMethod, expected) => {
    expect(await added(madeClient({ authMethod }))).toEqual(expected);
  });

  it("by HTTP Basic with both parts form-encoded", async () => {
    const { headers } = await added(madeClient({ clientId: "a-b: c", clientSecret: new Secret("s:%+ä") }));
    expect(headers).toEqual({ authorization: `Basic ${btoa("a-b%3A+c:s%3A%25%2B%C3%A4")}` });
  });

  it("by an assertion of its key, with the key id and the algorithm, and without nbf", async () => {
    const client = madeClient({ authMethod: "private_key_jwt" });
    for (const [algorithm, keyId] of [
      ["ES256", "k1"],
      ["PS256", undefined],
    ] as const) {
      const { key } = await clientKey(algorithm, keyId);
      const { body } = await added(client, key);
      const [header, payload] = (body["client_assertion"] ?? "").split(".", 2).map((part) => {
        return JSON.parse(atob(part.replaceAll("-", "+").replaceAll("_", "/"))) as object;
      });
      expect(header).toEqual({ alg: algorithm, ...(keyId !== undefined && { kid: keyId }) });
      expect(payload).toMatchObject({ iss: "client-1", sub: "client-1" });
      expect(payload).not.toHaveProperty("nbf");
    }
  });

  it("by nothing where it is a workload without a client", async () => {
    expect(await added(madeClient({ clientId: "" }))).toEqual({ body: {}, headers: {} });
  });

  it.each([
    ["client_secret_basic", "a secret", "clientSecret"],
    ["private_key_jwt", "a private key", "privateKey"],
  ] as const)("not by %s without %s, which is named with its option", (authMethod, what, option) => {
    expect(() => clientAuth(madeClient({ authMethod, clientSecret: undefined }), undefined)).toThrow(
      expect.objectContaining({
        code: "usage",
        class: "usage",
        message: `the client "client-1" authenticates with ${what}, which is not stored and must be provided`,
        hint: `set client.clientId and client.${option}`,
        remedy: { action: "configure", option },
      }),
    );
  });
});

describe("the key of a client", () => {
  const subtle = { type: "private" };
  const use = (key: unknown, algorithm: string) =>
    clientAuth(madeClient({ authMethod: "private_key_jwt" }), { key, algorithm } as ClientKey);
  const rsa = (name: string, hash = "SHA-256") => ({ name, hash: { name: hash } });
  const ec = (namedCurve: string) => ({ name: "ECDSA", namedCurve });
  const RIGHT: [SigningAlgorithm, object][] = [
    ["RS256", rsa("RSASSA-PKCS1-v1_5")],
    ["PS256", rsa("RSA-PSS")],
    ["ES256", ec("P-256")],
    ["ES384", ec("P-384")],
    ["EdDSA", { name: "Ed25519" }],
    ["Ed25519", { name: "Ed25519" }],
  ];

  it.each(RIGHT)("for %s is taken as %j, and as no other", (algorithm, right) => {
    const wrong = [
      ...RIGHT.map(([, one]) => one),
      rsa("RSASSA-PKCS1-v1_5", "SHA-1"),
      rsa("RSA-PSS", "SHA-512"),
      { name: "RSA-PSS" },
      { name: "ECDSA" },
      { name: "Ed448" },
    ].filter((one) => JSON.stringify(one) !== JSON.stringify(right));
    const message = `privateKey.key must be a private key for ${algorithm}`;
    expect(() => use({ ...subtle, algorithm: right, type: "public" }, algorithm)).toThrow(new TypeError(message));
    for (const one of wrong)
      expect(() => use({ ...subtle, algorithm: one }, algorithm)).toThrow(new TypeError(message));
    expect(() => use({ ...subtle, algorithm: right }, algorithm)).not.toThrow(message);
  });

  it.each(["HS256", "constructor"])("for %s is refused: nothing is known of that", (algorithm) => {
    expect(() => use({ ...subtle, algorithm: ec("P-256") }, algorithm)).toThrow(
      new TypeError(`privateKey.algorithm "${algorithm}" is not known`),
    );
  });
});

describe("the method of a client", () => {
  const BOTH = ["client_secret_post", "client_secret_basic"];

  it.each<[readonly string[] | undefined, AuthMethod]>([
    [undefined, "client_secret_basic"],
    [BOTH, "client_secret_post"],
    [["none", "client_secret_post"], "client_secret_post"],
    [["none"], "none"],
    [["private_key_jwt"], "client_secret_basic"],
  ])("that we register is, of %j: %s", (tokenEndpointAuthMethods, method) => {
    expect(preferredMethod(serverMetadata({ tokenEndpointAuthMethods }))).toBe(method);
  });

  it.each<[string, Partial<PreRegisteredClient>, AuthMethod]>([
    ["a secret", { clientSecret: "s" }, "client_secret_post"],
    ["no secret", {}, "none"],
    ["a method of its own", { clientSecret: "s", authMethod: "client_secret_basic" }, "client_secret_basic"],
  ])("with %s is %s", (_what, over, authMethod) => {
    const server = serverMetadata({ tokenEndpointAuthMethods: ["client_secret_post"] });
    const record = preRegisteredClient({ client: { clientId: "c", ...over }, server });
    expect(record).toEqual({
      issuer: server.issuer,
      clientId: "c",
      clientSecret: over.clientSecret === undefined ? undefined : expect.any(Secret),
      secretExpiresAt: undefined,
      redirectUri: undefined,
      authMethod,
      source: "pre-registered",
    });
  });

  it.each<[AuthMethod, readonly string[] | undefined, AuthMethod | undefined]>([
    ["client_secret_basic", BOTH, "client_secret_post"],
    ["client_secret_basic", ["client_secret_basic"], "client_secret_post"],
    ["client_secret_basic", undefined, "client_secret_post"],
    ["client_secret_post", BOTH, "client_secret_basic"],
    ["client_secret_post", undefined, "client_secret_basic"],
    ["client_secret_post", ["client_secret_post"], undefined],
    ["private_key_jwt", BOTH, undefined],
    ["none", BOTH, undefined],
  ])("%s, at an issuer that lists %j, has the alternative %s", (authMethod, tokenEndpointAuthMethods, other) => {
    expect(chosenMethod(authMethod, { tokenEndpointAuthMethods })).toEqual({
      authMethod,
      ...(other !== undefined && { alternateMethod: other }),
    });
  });

  it("is changed once, and not without a secret", () => {
    const client = madeClient({ authMethod: "client_secret_basic", alternateMethod: "client_secret_post" });
    const [changed, ...more] = withOtherForms(client);
    expect([changed, more]).toEqual([madeClient({ authMethod: "client_secret_post" }), []]);
    expect(changed && withOtherForms(changed)).toEqual([]);
    expect(withOtherForms({ ...client, clientSecret: undefined })).toEqual([]);
  });

  it("is followed by Basic with what the form encodes as it is, where that is another text", () => {
    const clientSecret = new Secret("a/b+c=");
    const raw = madeClient({ authMethod: "client_secret_basic", clientSecret, isRawBasic: true });
    for (const methods of [
      { authMethod: "client_secret_basic", alternateMethod: "client_secret_post" },
      { authMethod: "client_secret_post", alternateMethod: "client_secret_basic" },
    ] as const)
      expect(withOtherForms(madeClient({ ...methods, clientSecret })).at(-1)).toEqual(raw);
    expect(withOtherForms(raw)).toEqual([]);
    expect(
      withOtherForms(madeClient({ authMethod: "client_secret_basic", clientSecret: new Secret("\u00e9") })),
    ).toEqual([]);
  });
});

describe("a client whose method the issuer does not list", () => {
  const WAYS = "use a client that proves itself in one of these ways, or have it registered again";
  const refusal = (whose: string, list: string) =>
    expect.objectContaining({
      code: "client_auth_unsupported",
      class: "auth",
      message: `the authorization server "https://as.example/pool" takes no request ${whose}: ${list}`,
      hint: WAYS,
    });
  const LISTS = "token_endpoint_auth_methods_supported (RFC 8414 section 2) lists";
  const of = (method: string) => `of a client with the authentication method ${method}`;
  const make = (over: object, server: object, more: object = {}) =>
    preRegisteredClient({ client: { clientId: "c", ...over }, server: serverMetadata(server), ...more });
  const key = { key: {}, algorithm: "ES256" } as unknown as ClientKey;
  const MACHINE = { isMachine: true };

  it.each<[string, object, object, object, string, string]>([
    [
      "a key, and no list",
      { privateKey: key },
      {},
      {},
      of("private_key_jwt"),
      `${LISTS} nothing, which means client_secret_basic`,
    ],
    [
      "a key, and a list without it",
      { privateKey: key },
      { tokenEndpointAuthMethods: ["none", "client_secret_basic"] },
      {},
      of("private_key_jwt"),
      `${LISTS} "none, client_secret_basic"`,
    ],
    [
      "a key of another algorithm",
      { privateKey: key },
      { tokenEndpointAuthMethods: ["private_key_jwt"], tokenEndpointSigningAlgorithms: ["RS256", "PS256"] },
      {},
      "of a client whose key signs with ES256",
      'token_endpoint_auth_signing_alg_values_supported lists "RS256, PS256"',
    ],
    [
      "a machine without a secret",
      {},
      { tokenEndpointAuthMethods: ["client_secret_basic"] },
      MACHINE,
      of("none"),
      `${LISTS} "client_secret_basic"`,
    ],
    [
      "a machine without a secret, whose certificate is not listed",
      {},
      { tokenEndpointAuthMethods: ["client_secret_basic"] },
      { ...MACHINE, mutualTls: true },
      of("none"),
      `${LISTS} "client_secret_basic"`,
    ],
    [
      "a machine without a secret, and without a certificate",
      {},
      { tokenEndpointAuthMethods: ["tls_client_auth"] },
      MACHINE,
      of("none"),
      `${LISTS} "tls_client_auth"`,
    ],
  ])("is refused: %s", (_what, over, server, more, whose, list) => {
    expect(() => make(over, server, more)).toThrow(refusal(whose, list));
  });

  it.each<[string, object, object, object]>([
    ["a user's client", { clientSecret: "s" }, { tokenEndpointAuthMethods: ["private_key_jwt"] }, {}],
    ["a key that is configured, and no list", { privateKey: key, authMethod: "private_key_jwt" }, {}, {}],
    ["a key that is listed", { privateKey: key }, { tokenEndpointAuthMethods: ["private_key_jwt"] }, {}],
    [
      "a key of a listed algorithm",
      { privateKey: key },
      { tokenEndpointAuthMethods: ["private_key_jwt"], tokenEndpointSigningAlgorithms: ["ES256"] },
      {},
    ],
    ["a machine without a secret, and no list", {}, {}, MACHINE],
    ["a machine with a secret, and no list", { clientSecret: "s" }, {}, MACHINE],
    [
      "a machine with a certificate",
      {},
      { tokenEndpointAuthMethods: ["tls_client_auth"] },
      { ...MACHINE, mutualTls: true },
    ],
    [
      "a machine with a certificate of its own",
      {},
      { tokenEndpointAuthMethods: ["self_signed_tls_client_auth"] },
      { ...MACHINE, mutualTls: true },
    ],
    ["a workload without a client", { clientId: "" }, { tokenEndpointAuthMethods: ["private_key_jwt"] }, MACHINE],
  ])("is taken all the same: %s", (_what, over, server, more) => {
    expect(() => make(over, server, more)).not.toThrow();
  });
});
