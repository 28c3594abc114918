import { describe, expect, it } from "vitest";
import {
  isToken,
  normalizeResponse,
  secretsIn,
  secretsSentBefore,
  UNVERIFIED_ID_TOKEN,
} from "../../../src/oauth/http/normalize-response.js";
import { Redactor } from "../../../src/redact.js";

const URL_OF = "https://as.example/token";
const JSON_TYPE = "application/json";
const FORM_TYPE = "application/x-www-form-urlencoded";

/** The normalized form of a response. */
async function normalized(
  text: string,
  { type = JSON_TYPE, status = 200, headers = {}, secrets = new Redactor() } = {},
) {
  const response = new Response(text === "" ? null : text, { status, headers: { "content-type": type, ...headers } });
  const answer = normalizeResponse({ response, status, text, url: URL_OF } as never, secrets);
  const body = await answer.text();
  return { answer, status: answer.status, type: answer.headers.get("content-type"), body };
}

const members = async (given: object, over = {}): Promise<unknown> =>
  JSON.parse((await normalized(JSON.stringify(given), over)).body);

describe("the response of an endpoint", () => {
  it.each<[string, object, object]>([
    ...[null, "", []].flatMap((nothing): [string, object, object][] => [
      [
        `${JSON.stringify(nothing)} for optional members of a token`,
        { expires_in: nothing, refresh_token: nothing, id_token: nothing, scope: nothing, a: nothing },
        {},
      ],
      [
        `${JSON.stringify(nothing)} beside a code for a device and a client`,
        { verification_uri_complete: nothing, interval: nothing, redirect_uris: nothing, client_secret: nothing },
        {},
      ],
      [`${JSON.stringify(nothing)} for what is needed`, { access_token: nothing }, { access_token: nothing }],
    ]),
    ["seconds as digits", { expires_in: "3600", interval: "1" }, { expires_in: 3600, interval: 1 }],
    ["an interval that is none", { interval: "soon" }, {}],
    ["an interval of nothing", { interval: 0 }, {}],
    [
      "Google's name of an address",
      { verification_url: "https://a" },
      { verification_url: "https://a", verification_uri: "https://a" },
    ],
    ["a list of scopes", { scope: ["a", "b"] }, { scope: "a b" }],
    ["a list of what is no scope", { scope: ["a", 7] }, { scope: ["a", 7] }],
    ["seconds", { expires_in: 1.5 }, { expires_in: 1.5 }],
    ["a secret without its end", { client_secret: "s" }, { client_secret: "s", client_secret_expires_at: 0 }],
    [
      "a secret with its end",
      { client_secret: "s", client_secret_expires_at: 5 },
      { client_secret: "s", client_secret_expires_at: 5 },
    ],
    ["an end without a secret", { client_secret_expires_at: 5 }, { client_secret_expires_at: 5 }],
    [
      "an id token beside a token",
      { access_token: "a", id_token: "b" },
      { access_token: "a", [UNVERIFIED_ID_TOKEN]: "b" },
    ],
    ["a token alone", { access_token: "a" }, { access_token: "a" }],
    ["an id token alone", { id_token: "b" }, { id_token: "b" }],
  ])("has in one form: %s", async (_what, given, expected) => {
    expect(await members(given)).toEqual(expected);
  });

  it.each<[object, object]>([
    [{ expires_in: "60.5" }, { expires_in: 60.5 }],
    [{ expires_in: "0" }, { expires_in: 0 }],
    [{ expires_in: "" }, {}],
    [{ expires_in: " " }, {}],
    [{ expires_in: -1 }, {}],
    [{ expires_in: "soon" }, {}],
    [{ expires_in: [] }, {}],
    [
      { refresh_token: "r", scope: "a b" },
      { refresh_token: "r", scope: "a b" },
    ],
    [{ refresh_token: 7, scope: [7] }, {}],
    [{ refresh_token: "a b" }, {}],
    [{ refresh_token: "" }, {}],
  ])("beside a token lacks what is not valid: %j", async (given, expected) => {
    expect(await members({ access_token: "a", ...given })).toEqual({ access_token: "a", ...expected });
  });

  it.each<[number, object, number]>([
    [200, { error: "no" }, 400],
    [201, { error: "no" }, 400],
    [200, { error: "no", access_token: "a" }, 200],
    [200, { error: 7 }, 200],
    [201, { access_token: "a" }, 200],
    [201, { client_id: "a" }, 201],
    [401, { error: "no" }, 401],
    [200, {}, 200],
  ])("with HTTP %d and %j has HTTP %d", async (given, text, expected) => {
    expect((await normalized(JSON.stringify(text), { status: given })).status).toBe(expected);
  });

  it("has no challenge beside an error in its body, and no length", async () => {
    const headers = { "www-authenticate": "Basic", "content-length": "1", "x-other": "kept" };
    const of = async (text: string) => [...(await normalized(text, { status: 401, headers })).answer.headers.keys()];
    expect(await of('{"error":"no"}')).toEqual(["content-type", "x-other"]);
    expect(await of('{"error":7}')).toEqual(["content-type", "www-authenticate", "x-other"]);
    expect(await of("")).toEqual(["content-type", "www-authenticate", "x-other"]);
  });

  it("may be form-encoded, with each name once", async () => {
    const form = await normalized("access_token=a&expires_in=60", {
      type: `${FORM_TYPE.toUpperCase()}; charset=utf-8`,
    });
    expect([form.type, JSON.parse(form.body)]).toEqual([JSON_TYPE, { access_token: "a", expires_in: 60 }]);
    await expect(normalized("a=1&a=1", { type: FORM_TYPE })).rejects.toMatchObject({
      code: "bad_token_answer",
      message: `a "(several)" (from "${URL_OF}") must come once`,
    });
  });

  it("is passed on where it is a failure without members, and else refused", async () => {
    const page = { type: "text/html", status: 403 };
    expect(await normalized("<p>", page)).toMatchObject({ status: 403, type: "text/html", body: "<p>" });
    expect(await normalized("", { status: 200 })).toMatchObject({ status: 200, body: "" });
    await expect(normalized("<p>", { ...page, status: 200 })).rejects.toMatchObject({
      code: "bad_content_type",
      class: "unavailable",
    });
    await expect(normalized("{", { status: 200 })).rejects.toMatchObject({ code: "bad_json", class: "refused" });
  });

  it("shows no secret as the token type", async () => {
    const names = ["access_token", "refresh_token", "client_secret", "registration_access_token"];
    for (const name of names) {
      const given = { [name]: "hush-hush", token_type: "hush-hush" };
      expect(await members(given)).toMatchObject({ token_type: expect.not.stringContaining("hush") });
    }
    const secrets = new Redactor();
    secrets.add("sent-before");
    expect(await members({ token_type: "sent-before" }, { secrets })).not.toEqual({ token_type: "sent-before" });
    expect(await members({ token_type: "Bearer", other: "hush-hush" })).toMatchObject({ token_type: "Bearer" });
  });

  it("is remembered with the secrets of its request", async () => {
    const secrets = new Redactor();
    const { answer } = await normalized("{}", { secrets });
    expect(secretsSentBefore(answer)).toBe(secrets);
    for (const other of [new Response(), undefined, {}]) expect(secretsSentBefore(other)).not.toBe(secrets);
  });
});

describe("the secrets of a request", () => {
  const SECRET = "hush hüsh+/=?.0123456789abcdef";
  const masks = (secrets: Redactor, text: string) => !secrets.redactKnown(`said "${text}"`).includes(text);

  it.each([
    "code",
    "code_verifier",
    "client_secret",
    "client_assertion",
    "assertion",
    "refresh_token",
    "device_code",
    "subject_token",
    "actor_token",
    "token",
  ])("are in the member %s, in each form in which a server may repeat them", (name) => {
    const secrets = secretsIn(new Headers(), new URLSearchParams({ [name]: SECRET, other: "public-word" }));
    const base64 = Buffer.from(SECRET).toString("base64").replace(/=+$/, "");
    const form = new URLSearchParams({ "": SECRET }).toString().slice(1);
    for (const text of [SECRET, encodeURIComponent(SECRET), form, base64, Buffer.from(SECRET).toString("base64url")])
      expect(masks(secrets, text), text).toBe(true);
    expect(masks(secrets, "0123456789abcdef")).toBe(true);
    expect(masks(secrets, "public-word")).toBe(false);
  });

  it("are in each of two members with one name, and the parts of a JWT that are long enough", () => {
    const secrets = secretsIn(new Headers(), "token=first-secret&token=abcdefghijklmno.abcdefghijklmnop");
    for (const text of ["first-secret", "abcdefghijklmnop"]) expect(masks(secrets, text)).toBe(true);
    expect(masks(secrets, "abcdefghijklmno")).toBe(false);
  });

  it.each(["Basic", "basic"])("are in the headers: %s", (scheme) => {
    const credentials = btoa("client:se%20cret+word");
    const secrets = secretsIn(new Headers({ authorization: `${scheme} ${credentials}`, dpop: "proof-of-key" }), "");
    for (const text of [credentials, "se%20cret+word", "se cret word", "proof-of-key"])
      expect(masks(secrets, text), text).toBe(true);
    expect(masks(secrets, "client")).toBe(false);
  });

  it("may be those of another scheme, or none", () => {
    const secrets = secretsIn(new Headers({ authorization: "Bearer a-token.b" }), undefined);
    expect(masks(secrets, "a-token.b")).toBe(true);
    expect(masks(secretsIn(new Headers(), undefined), "undefined")).toBe(false);
  });
});

it.each<[unknown, boolean]>([
  ["a", true],
  ["!~", true],
  ["x".repeat(64 * 1024), true],
  ["x".repeat(64 * 1024 + 1), false],
  ["", false],
  ["a b", false],
  ["a\n", false],
  ["tökén", false],
  [7, false],
  [undefined, false],
])("whether %o has the form of a token is %s", (value, expected) => {
  expect(isToken(value)).toBe(expected);
});
