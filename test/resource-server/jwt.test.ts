import { createHmac, randomUUID } from "node:crypto";
import { deflateRawSync } from "node:zlib";
import { CompactEncrypt, exportJWK, exportSPKI } from "jose";
import { describe, expect } from "vitest";
import { startServer } from "../helpers/server.js";
import { rejection } from "../helpers/service.js";
import {
  assemble,
  it as base,
  type Claims,
  countOf,
  makeKey,
  outcome,
  pass,
  REFUSED,
  RESOURCE,
  type Server,
  startSigner,
} from "./support.js";

const it = base
  // The tests are of no use where a good token is not accepted.
  .extend("precondition", { auto: true }, async ({ server, signer }) => {
    expect((await server.ask(await signer.sign())).status).toBe(200);
  })
  .extend("refused", ({ server }) => async (token: string, reason: string, by: Server = server): Promise<void> => {
    expect(outcome(await by.ask(token))).toEqual([401, REFUSED]);
    expect(by.reasons()).toEqual([reason]);
  });

const rsa = await makeKey("rsa", "RS256");

const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/** A part of a token in the other encodings that decoders accept. */
function otherEncodings(part: string): string[] {
  const bytes = Buffer.from(part, "base64url");
  const lastLetters = [...LETTERS].map((letter) => part.slice(0, -1) + letter);
  const texts = [...lastLetters, `${part}==`, `${part}\n`, bytes.toString("base64")];
  return texts.filter((text) => text !== part && Buffer.from(text, "base64").equals(bytes));
}

/** Every algorithm that is accepted where the options name none. */
const ALGORITHMS = [
  ...["ES256", "ES384", "ES512", "EdDSA", "Ed25519"],
  ...["PS256", "PS384", "PS512", "RS256", "RS384", "RS512"],
];

/** An ECDSA signature in DER (RFC 3279 section 2.2.3), as other protocols have it. */
function derOf(bytes: Uint8Array): Uint8Array {
  const integer = (part: Uint8Array) => [0x02, part.length + 1, 0, ...part];
  const half = bytes.length / 2;
  const content = [...integer(bytes.subarray(0, half)), ...integer(bytes.subarray(half))];
  return new Uint8Array([0x30, content.length, ...content]);
}

describe("algorithms (V2)", () => {
  it.for(["none", "None", "nOnE", "HS256", "ES256K", "RSA-OAEP", "", 5, undefined])(
    "refuses alg %j",
    async (alg, { server, refused, signer }) => {
      const header = { typ: "at+jwt", kid: "key-1", alg };
      for (const signature of ["", "AAAA"]) {
        server.log.length = 0;
        await refused(assemble(header, signer.claims(), signature), "algorithm");
      }
    },
  );

  it("takes no public key for the secret of an HMAC", async ({ signer, refused }) => {
    signer.keys.push(rsa.jwk);
    const fresh = signer.server();
    const unsigned = assemble({ alg: "HS256", typ: "at+jwt", kid: "rsa" }, signer.claims()).slice(0, -1);
    for (const secret of [await exportSPKI(rsa.publicKey), JSON.stringify(rsa.jwk)]) {
      fresh.log.length = 0;
      const signature = createHmac("sha256", secret).update(unsigned).digest("base64url");
      await refused(`${unsigned}.${signature}`, "algorithm", fresh);
    }
  });

  it("takes the algorithms of the options alone, also for a key that names none", async ({ signer, refused }) => {
    const { alg: _, ...bare } = rsa.jwk;
    signer.keys.push(bare);
    const token = await signer.sign({}, { alg: "RS256", kid: "rsa" }, rsa);
    expect((await signer.server({ algorithms: ["RS256"] }).ask(token)).status).toBe(200);
    await refused(token, "algorithm", signer.server({ algorithms: ["PS256", "ES256"] }));
  });

  it("takes no algorithm that the key is not for", async ({ signer, refused }) => {
    signer.keys.push({ ...rsa.jwk, alg: "PS256" });
    await refused(await signer.sign({}, { alg: "RS256", kid: "rsa" }, rsa), "key", signer.server());
  });

  it.for(ALGORITHMS)("accepts %s by a key of its own, in the one form of its signature", async (alg, { signer }) => {
    const key = await makeKey("own", alg);
    signer.keys.push(key.jwk);
    const fresh = signer.server();
    let token: string;
    // One RSA signature of 256 begins with a zero; without it, that one is refused for its length.
    do token = await signer.sign({ jti: randomUUID() }, { alg, kid: "own" }, key);
    while (Buffer.from(token.split(".")[2] ?? "", "base64url")[0] === 0);
    await expect(fresh.verify(token)).resolves.toMatchObject({ subject: "alice" });
    const forms: ((bytes: Uint8Array) => Uint8Array)[] = [
      (bytes) => bytes.subarray(1),
      (bytes) => new Uint8Array([0, ...bytes]),
      (bytes) => new Uint8Array([...bytes, 0]),
      (bytes) => new Uint8Array(bytes.length),
    ];
    if (alg.startsWith("ES")) forms.push(derOf);
    for (const form of forms) {
      const [head, body, signature = ""] = token.split(".");
      const changed = Buffer.from(form(Buffer.from(signature, "base64url"))).toString("base64url");
      expect(await rejection(fresh.verify(`${head}.${body}.${changed}`))).toMatchObject({ code: "invalid_token" });
    }
    expect(fresh.reasons()).toEqual(forms.map(() => "signature"));
  });

  it("takes no PS256 signature without the zero that it begins with", async ({ signer }) => {
    const key = await makeKey("own", "PS256");
    signer.keys.push(key.jwk);
    const fresh = signer.server();
    for (let nth = 0; ; nth++) {
      const token = await signer.sign({ jti: `t${nth}` }, { alg: "PS256", kid: "own" }, key);
      const [head, body, signature = ""] = token.split(".");
      const bytes = Buffer.from(signature, "base64url");
      // One of 256 does.
      if (bytes[0] !== 0) continue;
      await expect(fresh.verify(`${head}.${body}.${bytes.subarray(1).toString("base64url")}`)).rejects.toThrow();
      expect(fresh.reasons()).toEqual(["signature"]);
      signer.keys.push({ ...rsa.jwk, alg: "PS256", kid: "own" });
      const several = signer.server();
      await expect(several.verify(`${head}.${body}.${bytes.subarray(1).toString("base64url")}`)).rejects.toThrow();
      expect(several.reasons()).toEqual(["signature"]);
      return expect(fresh.verify(token)).resolves.toMatchObject({ subject: "alice" });
    }
  });

  it.for([["none"], ["HS256"], ["ES256", "HS512"], []] as const)(
    "rejects the option %j",
    ([...algorithms], { signer }) => {
      expect(() => signer.server({ algorithms })).toThrow(TypeError);
    },
  );
});

describe("headers of a token (V3)", () => {
  it("lead nowhere: no key is fetched from an address in a token, and none is taken out of it", async ({
    signer,
    server,
  }) => {
    const mine = await makeKey("mine");
    const trap = await startServer((response) => response.end(JSON.stringify({ keys: [mine.jwk] })));
    const headers: Record<string, unknown>[] = [
      { jku: `${trap.origin}/keys`, kid: "mine" },
      { x5u: `${trap.origin}/cert`, kid: "mine" },
      { jwk: await exportJWK(mine.publicKey), kid: "mine" },
      { x5c: ["AAAA"], kid: "mine" },
      { jku: `${trap.origin}/keys`, kid: "key-1" },
    ];
    for (const header of headers) {
      await pass(signer, 60);
      const response = await server.ask(await signer.sign({}, header, mine));
      expect(outcome(response)).toEqual([401, REFUSED]);
    }
    expect(trap.requests).toEqual([]);
  });

  it.for(["../../../etc/passwd", "' OR 1=1 --", "key-1\u0000", "KEY-1", ""])(
    "refuses the kid %j",
    async (kid, { signer, refused }) => {
      await pass(signer, 60);
      await refused(await signer.sign({}, { kid }, await makeKey()), "key");
      expect(countOf(signer, "/jwks")).toBe(2);
    },
  );

  it("must not be critical, not even where the algorithm library would understand them", async ({
    server,
    refused,
    signer,
  }) => {
    const extended = { alg: "ES256", typ: "at+jwt", kid: "key-1" };
    for (const crit of [["exp"], ["b64"], ["unknown"], [], "unknown"]) {
      server.log.length = 0;
      await refused(assemble({ ...extended, crit, b64: true, unknown: 1 }, signer.claims(), "AAAA"), "critical");
    }
  });

  it("must come once each", async ({ signer, refused }) => {
    const token = assemble('{"alg":"none","alg":"ES256","typ":"at+jwt","kid":"key-1"}', signer.claims(), "AAAA");
    await refused(token, "not_a_jwt");
  });
});

describe("tokens that are no signed JWTs (V3)", () => {
  it("refuses an encrypted one", async ({ signer, refused }) => {
    const key = await makeKey("enc", "ECDH-ES");
    const encrypted = await new CompactEncrypt(new TextEncoder().encode(JSON.stringify(signer.claims())))
      .setProtectedHeader({ alg: "ECDH-ES", enc: "A256GCM", typ: "at+jwt" })
      .encrypt(key.publicKey);
    await refused(encrypted, "encrypted");
  });

  it("refuses a compressed one, and inflates nothing", async ({ refused }) => {
    const bomb = deflateRawSync(Buffer.alloc(1_000_000, "a")).toString("base64url");
    const head = Buffer.from(JSON.stringify({ alg: "ES256", typ: "at+jwt", zip: "DEF" })).toString("base64url");
    await refused(`${head}.${bomb}.AAAA`, "not_a_jwt");
  });

  it.for(["x", "..", "a.b.c", "a.b.c.d", "eyJhbGciOiJFUzI1NiJ9..", `${"e30.".repeat(2)}`, "[].{}.AAAA"])(
    "refuses %j",
    async (token, { server }) => {
      const response = await server.ask({ authorization: `Bearer ${token}` });
      expect(outcome(response)).toEqual([401, REFUSED]);
    },
  );

  it.for<[string, (token: string) => string]>([
    ["lacks its signature", (token) => token.split(".").slice(0, 2).join(".")],
    ["has a part more", (token) => `${token}.AAAA`],
    ["has claims in another encoding", (token) => token.replace(/\..+\./, ".eyJhIjoi_yJ9.")],
  ])("refuses one that %s", async ([_what, change], { signer, server, refused }) => {
    await refused(change(await signer.sign()), "not_a_jwt");
    expect(server.log).toMatchObject([{ detail: "the token is no JWT" }]);
  });

  it("looks at no token of a megabyte, however it comes", async ({ signer, refused, server }) => {
    const token = `${await signer.sign()}${"A".repeat(1_000_000)}`;
    await refused(token, "too_large");
    server.log.length = 0;
    expect(await rejection(server.verify(token))).toMatchObject({ code: "invalid_token", status: 401 });
    expect(server.reasons()).toEqual(["too_large"]);
  });

  it("refuses claims that come twice, or are nested without end", async ({ signer, refused, server }) => {
    const [head = "", , signature = ""] = (await signer.sign()).split(".");
    const body = (text: string) => Buffer.from(text).toString("base64url");
    await refused(`${head}.${body('{"iss":"a","iss":"b"}')}.${signature}`, "not_a_jwt");
    server.log.length = 0;
    await refused(`${head}.${body(`${'{"a":'.repeat(1000)}1${"}".repeat(1000)}`)}.${signature}`, "not_a_jwt");
  });
});

describe("signatures", () => {
  it("must be those of the issuer's key", async ({ refused, signer }) => {
    await refused(await signer.sign({}, {}, await makeKey()), "signature");
  });

  it("are refused in another encoding of the same bytes", async ({ signer }) => {
    const ec = await makeKey("ec");
    signer.keys.push(rsa.jwk, ec.jwk);
    for (const [alg, kid, key] of [
      ["RS256", "rsa", rsa],
      ["ES256", "ec", ec],
    ] as const) {
      const token = await signer.sign({}, { alg, kid }, key);
      const fresh = signer.server();
      await expect(fresh.verify(token)).resolves.toBeDefined();
      const [head, body, signature = ""] = token.split(".");
      const others = otherEncodings(signature);
      expect(others.length).toBeGreaterThan(15);
      for (const other of others)
        expect(await rejection(fresh.verify(`${head}.${body}.${other}`))).toMatchObject({ code: "invalid_token" });
      expect(fresh.reasons()).toEqual(others.map(() => "not_a_jwt"));
    }
  });

  it("are refused of a header in another encoding", async ({ signer, refused }) => {
    const [head = "", body = ""] = (await signer.sign()).split(".");
    const [other = ""] = otherEncodings(head);
    const signed = `${other}.${body}`;
    const algorithm = { name: "ECDSA", hash: "SHA-256" };
    const signature = await crypto.subtle.sign(algorithm, signer.key.privateKey, Buffer.from(signed));
    await refused(`${signed}.${Buffer.from(signature).toString("base64url")}`, "not_a_jwt");
  });

  it("are of these very claims", async ({ signer, refused }) => {
    const [head, , signature] = (await signer.sign()).split(".");
    const body = Buffer.from(JSON.stringify(signer.claims({ scope: "mcp admin" }))).toString("base64url");
    await refused(`${head}.${body}.${signature}`, "signature");
  });

  it("are tried with each key where the token names none", async ({ signer, refused }) => {
    const second = await makeKey("key-2");
    signer.keys.push(second.jwk);
    const fresh = signer.server();
    for (const key of [signer.key, second]) {
      expect((await fresh.ask(await signer.sign({}, { kid: undefined }, key))).status).toBe(200);
    }
    await refused(await signer.sign({}, { kid: undefined }, await makeKey()), "signature", fresh);
  });

  it("are not tried with more than eight keys", async ({ signer, refused }) => {
    const others = await Promise.all(Array.from({ length: 8 }, (_, at) => makeKey(`other-${at}`)));
    signer.keys = [...others.map(({ jwk }) => jwk), signer.key.jwk];
    await refused(await signer.sign({}, { kid: undefined }), "signature", signer.server());
    signer.keys = signer.keys.slice(1);
    expect((await signer.server().ask(await signer.sign({}, { kid: undefined }))).status).toBe(200);
  });

  it("are not tried with a key that is for encryption or for another algorithm, or is symmetric", async ({
    signer,
    refused,
  }) => {
    const { jwk } = signer.key;
    signer.keys = [
      { ...jwk, use: "enc" },
      { ...jwk, key_ops: ["sign"] },
      { ...jwk, alg: "ES384" },
      { kty: "oct", k: "AAAA", kid: "key-1", alg: "HS256" },
    ];
    await refused(await signer.sign(), "key", signer.server());
  });
});

describe("the type of a token (V4)", () => {
  it.for(["JWT", "id_token", "dpop+jwt", "logout+jwt", "at+jwtx", "text/at+jwt", "x-application/at+jwt", ""])(
    "refuses %j",
    async (typ, { refused, signer }) => {
      await refused(await signer.sign({}, { typ }), "typ");
    },
  );

  it("refuses none, and takes the one of RFC 9068 in any case and with its prefix", async ({
    server,
    signer,
    refused,
  }) => {
    for (const typ of ["at+jwt", "AT+JWT", "application/at+jwt"]) {
      expect((await server.ask(await signer.sign({}, { typ }))).status).toBe(200);
    }
    await refused(await signer.sign({}, { typ: undefined }), "typ");
  });

  it("may be that of other JWTs where the options say so, but ID tokens stay out", async ({ signer, refused }) => {
    const legacy = signer.server({ typ: "legacy" });
    for (const typ of ["JWT", "jwt", undefined, "at+jwt"]) {
      expect((await legacy.ask(await signer.sign({}, { typ }))).status).toBe(200);
    }
    await refused(await signer.sign({}, { typ: "logout+jwt" }), "typ", legacy);
    legacy.log.length = 0;
    await refused(await signer.sign({ at_hash: "AAAA" }, { typ: "JWT" }), "typ", legacy);
    legacy.log.length = 0;
    await refused(await signer.sign({ c_hash: "AAAA" }, { typ: "JWT" }), "typ", legacy);
  });
});

describe("whom a token is for (V5)", () => {
  it.for([
    undefined,
    "",
    "https://elsewhere.example/mcp",
    "https://mcp.example",
    "https://mcp.example/",
    "https://mcp.example/mcp/",
    "https://mcp.example/mcp/tools",
    "https://mcp.example/mc",
    "https://MCP.example/mcp",
    "https://mcp.example:443/mcp",
    "http://mcp.example/mcp",
    "https://mcp.example/mcp?",
    `${RESOURCE} https://elsewhere.example`,
    [],
    ["https://elsewhere.example"],
    [RESOURCE, 5],
    [[RESOURCE]],
    { [RESOURCE]: true },
    5,
    null,
  ])("refuses aud %j", async (aud, { refused, signer }) => {
    await refused(await signer.sign({ aud }), "audience");
  });

  it("takes a list that has this server among others", async ({ server, signer }) => {
    const aud = ["https://elsewhere.example", RESOURCE];
    const verified = await server.verify(await signer.sign({ aud }));
    expect(verified.audience).toEqual(aud);
  });

  it("can be named otherwise by the options, in place of the resource", async ({ signer, refused }) => {
    const named = signer.server({ audience: ["api://mcp", "urn:mcp"] });
    expect((await named.ask(await signer.sign({ aud: "urn:mcp" }))).status).toBe(200);
    await refused(await signer.sign(), "audience", named);
  });
});

describe("who issued a token (V6)", () => {
  it.for<[string, (issuer: string) => unknown]>([
    ["a slash at the end", (issuer) => `${issuer}/`],
    ["upper case", (issuer) => issuer.toUpperCase()],
    ["another pool", (issuer) => issuer.replace("/pool", "/other")],
    ["the origin", (issuer) => new URL(issuer).origin],
    ["no subject", () => undefined],
    ["a list", (issuer) => [issuer]],
    ["the name of a member of every object", () => "__proto__"],
  ])("refuses %s without a request", async ([_what, iss], { signer, refused }) => {
    const fresh = signer.server();
    await refused(await signer.sign({ iss: iss(signer.issuer.issuer) }), "issuer", fresh);
    expect(countOf(signer, "/jwks")).toBe(1);
  });

  it("takes the keys of one issuer for its own tokens alone", async ({ signer, refused }) => {
    const other = await startSigner("other", "/other");
    const both = [signer.issuer.issuer, other.issuer.issuer];
    const server = signer.server({ authorizationServers: both });
    expect((await server.ask(await signer.sign())).status).toBe(200);
    expect((await server.ask(await other.sign())).status).toBe(200);
    await refused(await other.sign({ iss: signer.issuer.issuer }), "signature", server);
  });
});

describe("times (V10)", () => {
  it.for<[string, (now: number) => Claims, string | undefined]>([
    ["exp a minute ago", (now) => ({ exp: now - 60 }), "expired"],
    ["exp 59 s ago", (now) => ({ exp: now - 59 }), undefined],
    ["exp 0", () => ({ exp: 0 }), "expired"],
    ["no exp", () => ({ exp: undefined }), "claims"],
    ["exp a text", (now) => ({ exp: String(now + 300) }), "claims"],
    ["exp 1e300", () => ({ exp: 1e300 }), "claims"],
    ["exp in milliseconds", (now) => ({ exp: (now + 300) * 1000 }), "claims"],
    ["exp at the end of the year 9999", () => ({ exp: 253_402_300_799 }), undefined],
    ["exp after the year 9999", () => ({ exp: 253_402_300_800 }), "claims"],
    ["exp negative", () => ({ exp: -1 }), "claims"],
    ["exp null", () => ({ exp: null }), "claims"],
    ["exp a list", (now) => ({ exp: [now + 300] }), "claims"],
    ["exp a fraction", (now) => ({ exp: now + 0.5 }), undefined],
    ["nbf in 61 s", (now) => ({ nbf: now + 61 }), "not_yet"],
    ["nbf in 60 s", (now) => ({ nbf: now + 60 }), undefined],
    ["nbf a text", () => ({ nbf: "0" }), "claims"],
    ["iat in 61 s", (now) => ({ iat: now + 61 }), "not_yet"],
    ["iat in 60 s", (now) => ({ iat: now + 60 }), undefined],
    ["iat a boolean", () => ({ iat: true }), "claims"],
    ["no iat", () => ({ iat: undefined }), undefined],
  ])("%s", async ([_what, over, reason], { signer, server, refused }) => {
    const token = await signer.sign(over(Math.floor(signer.clock.epoch() / 1000)));
    if (reason === undefined) expect((await server.ask(token)).status).toBe(200);
    else await refused(token, reason);
  });

  it("are held exactly where clocks must not differ", async ({ signer, refused }) => {
    const exact = signer.server({ clockSkewSeconds: 0 });
    const token = await signer.sign();
    await pass(signer, 299);
    expect((await exact.ask(token)).status).toBe(200);
    await pass(signer, 1);
    await refused(token, "expired", exact);
  });
});

describe("other claims", () => {
  it.for<[Claims, string]>([
    [{ sub: 5 }, "claims"],
    [{ client_id: ["agent"] }, "claims"],
    [{ cnf: { jkt: "AAAA" } }, "bound"],
    [{ cnf: { "x5t#S256": "AAAA" } }, "bound"],
  ])("refuses %j", async ([over, reason], { refused, signer }) => {
    await refused(await signer.sign(over), reason);
  });

  it("may be missing where nothing depends on them", async ({ signer, server }) => {
    const token = await signer.sign({ sub: undefined, client_id: undefined, azp: "app", jti: undefined });
    expect(await server.verify(token)).toMatchObject({ subject: undefined, clientId: "app" });
  });
});
