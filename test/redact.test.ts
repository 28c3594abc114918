import { request } from "node:http";
import { inspect } from "node:util";
import { describe, expect, it } from "vitest";
import { escapeText, hideClientSecret, MASK, quote, Redactor, SECRET_MASK, Secret } from "../src/redact.js";
import { fc } from "./helpers/properties.js";

/** Written on its own, character class by character class, so that it does not share a mistake with the source. */
function isHarmless(char: string): boolean {
  const code = char.codePointAt(0) ?? 0;
  if (code === 0x20) return true;
  if (/[\s\p{C}\p{Z}]/u.test(char)) return false;
  if (/\p{Default_Ignorable_Code_Point}/u.test(char) || /\p{Bidi_Control}/u.test(char)) return false;
  return code !== 0x2800 && code !== 0x1d159;
}

describe("escapeText", () => {
  it("leaves no control, bidirectional, invisible or unassigned code point of all Unicode", () => {
    const leaked: string[] = [];
    const changed: string[] = [];
    for (let code = 0; code <= 0x10ffff; code++) {
      const char = String.fromCodePoint(code);
      const escaped = escapeText(`a${char}b`);
      if (isHarmless(char)) {
        if (escaped !== `a${char}b`) changed.push(code.toString(16));
      } else if (!/^a\\(?:[nrte]|u\{[\da-f]{1,6}\})b$/.test(escaped)) {
        leaked.push(code.toString(16));
      }
    }
    expect(leaked).toEqual([]);
    expect(changed).toEqual([]);
  });

  it.each([
    ["\u001b]8;;https://evil.example\u0007x\u001b]8;;\u0007", String.raw`\e]8;;https://evil.example\u{7}x\e]8;;\u{7}`],
    ["a\r\nb\tc\0", String.raw`a\r\nb\tc\u{0}`],
    ["\u009b31m\u007f\b", String.raw`\u{9b}31m\u{7f}\u{8}`],
    ["user\u202etxt.exe\u2066", String.raw`user\u{202e}txt.exe\u{2066}`],
    [
      "\u200b\u200d\u2060\ufeff\u061c\u00ad\u{e0041}",
      String.raw`\u{200b}\u{200d}\u{2060}\u{feff}\u{61c}\u{ad}\u{e0041}`,
    ],
    ["a\u2028b\u2029c\u0085d\u00a0e\u3000", String.raw`a\u{2028}b\u{2029}c\u{85}d\u{a0}e\u{3000}`],
    ["\ud800 \udc00", String.raw`\u{d800} \u{dc00}`],
    ["日本語 ελληνικά 🦊 é", "日本語 ελληνικά 🦊 é"],
  ])("shows %j as %s", (text, expected) => {
    expect(escapeText(text)).toBe(expected);
  });

  it("keeps the emoji selector after an emoji and nowhere else", () => {
    expect(escapeText("❤\ufe0f 🌶\ufe0f")).toBe("❤\ufe0f 🌶\ufe0f");
    expect(escapeText("\ufe0f")).toBe(String.raw`\u{fe0f}`);
    expect(escapeText("a\ufe0f❤")).toBe(String.raw`a\u{fe0f}❤`);
    expect(escapeText("❤\ufe0f\ufe0f")).toBe(`❤\ufe0f${String.raw`\u{fe0f}`}`);
    expect(escapeText("🌶\ufe0f\ufe0f")).toBe(`🌶\ufe0f${String.raw`\u{fe0f}`}`);
    expect(escapeText("❤a\ufe0f")).toBe(String.raw`❤a\u{fe0f}`);
    // U+1F8FF is reserved for an emoji to come, and escaped itself.
    expect(escapeText("\u{1f8ff}\ufe0f")).toBe(String.raw`\u{1f8ff}\u{fe0f}`);
  });

  it.each([
    ...["می\u200cخواهم فارسی", "خانه\u200cها", "سُ\u200cم", "\u0712\u200c\u0712", "\u07ca\u200c\u07cb"],
    ...["\u0841\u200c\u0840", "\u1820\u200c\u1821", "\ua840\u200c\ua841", "\u{10d01}\u200c\u{10d02}"],
    ...["\u{1e900}\u200c\u{1e901}", "क्\u200dष", "क्\u200cष", "ක්\u200dය", "👩\u200d🚀", "👩🏻\u200d⚕\ufe0f"],
    ...["🏳\ufe0f\u200d🌈", "❤\ufe0f\u200d🔥", "👨\u200d👩\u200d👧", "🕵🏿\u200d♂\ufe0f"],
  ])("leaves the joiner of %s", (text) => {
    expect(escapeText(text)).toBe(text);
  });

  it.each([
    ["a\u200cb", "a\\u{200c}b"],
    ["pay\u200dpal", "pay\\u{200d}pal"],
    // Joins nothing to its left.
    ["ا\u200cب", "ا\\u{200c}ب"],
    ["\u0710\u200c\u0712", "\u0710\\u{200c}\u0712"],
    ["\u0840\u200c\u0841", "\u0840\\u{200c}\u0841"],
    ["\u0771\u200cب", "\u0771\\u{200c}ب"],
    ["\ufe8e\u200cب", "\ufe8e\\u{200c}ب"],
    ["\u{10d22}\u200c\u{10d02}", "\u{10d22}\\u{200c}\u{10d02}"],
    ["ب\u200c", "ب\\u{200c}"],
    ["ب\u200c\u200cب", "ب\\u{200c}\\u{200c}ب"],
    ["ب\u200dب", "ب\\u{200d}ب"],
    ["क\u200dष", "क\\u{200d}ष"],
    ["क्\u200d\u200dष", "क्\u200d\\u{200d}ष"],
    ["क्\u200c", "क्\\u{200c}"],
    ["👩\u200d", "👩\\u{200d}"],
    ["👩\u200da", "👩\\u{200d}a"],
    ["👩\u200d\u200d🚀", "👩\\u{200d}\\u{200d}🚀"],
    ["©\u200d©", "©\\u{200d}©"],
    ["1\u200d🚀", "1\\u{200d}🚀"],
  ])("shows the joiner of %s, which changes nothing that one sees", (text, expected) => {
    expect(escapeText(text)).toBe(expected);
  });

  it("names a pile of combining marks by its number, and lets eight pass", () => {
    const mark = "\u0301";
    expect(escapeText(`e${mark.repeat(8)}x`)).toBe(`e${mark.repeat(8)}x`);
    expect(escapeText(`e${mark.repeat(9)}x`)).toBe(`e${mark.repeat(4)}\\u{+5 marks}x`);
    expect(escapeText(`e${mark.repeat(1000)}x`)).toBe(`e${mark.repeat(4)}\\u{+996 marks}x`);
  });

  it("lets nothing invisible through in a pile of marks", () => {
    expect(escapeText(`e${"\u0301\u034f".repeat(9)}`)).toBe(`e${"\u0301\\u{34f}".repeat(9)}`);
    expect(escapeText(`e${"\u{e0100}".repeat(20)}`)).toBe(`e${"\\u{e0100}".repeat(20)}`);
  });

  const nasty = fc.oneof(
    fc.string({ unit: "binary" }),
    fc.string({
      unit: fc.constantFrom(
        ...["a", " ", "\u0301", "\u034f", "\ufe0f", "❤", "🌶", "\u{e0100}", "\ud83c", "\udf36", "\\", "{", "}"],
      ),
      maxLength: 40,
    }),
  );

  it("leaves nothing harmful in any text, piles and selectors included", () => {
    fc.assert(
      fc.property(nasty, (text) => {
        const escaped = escapeText(text).replace(/\p{Extended_Pictographic}\ufe0f/gu, "");
        expect([...escaped].filter((char) => !isHarmless(char))).toEqual([]);
        expect(escaped).not.toMatch(/\p{M}{9,}/u);
      }),
      { numRuns: 2000 },
    );
  });

  it("changes nothing the second time", () => {
    fc.assert(
      fc.property(nasty, (text) => {
        expect(escapeText(escapeText(text))).toBe(escapeText(text));
      }),
      { numRuns: 2000 },
    );
  });
});

describe("quote", () => {
  it.each([
    ["a\nb", String.raw`"a\nb"`],
    [7, '"7"'],
    [null, '"null"'],
    [undefined, '"undefined"'],
    [{ a: ["\u202e"] }, String.raw`"{"a":["\u{202e}"]}"`],
    [10n, '"bigint"'],
  ])("shows %s as %s", (value, expected) => {
    expect(quote(value)).toBe(expected);
  });

  it("leaves out the user name and password of an address, however long", () => {
    expect(quote("ftp://me:pa@ss@host.example/x?y=a@b")).toBe(`"ftp://********@host.example/x?y=a@b"`);
    expect(quote(`//${"p".repeat(500)}@host.example`)).toBe(`"//********@host.example"`);
    expect(quote("https://host.example/@scope")).toBe(`"https://host.example/@scope"`);
  });

  it("cuts with an ellipsis, at whole characters", () => {
    expect(quote("x".repeat(200))).toBe(`"${"x".repeat(200)}"`);
    expect(quote("x".repeat(201))).toBe(`"${"x".repeat(200)}…"`);
    expect(quote("abcd🦊", 5)).toBe('"abcd…"');
    expect(quote(`${"\u0301".repeat(500)}end`, 40)).toMatch(/marks\}…"$/);
  });

  it("shows what no JSON can hold, and what is nested too deep, without failing", () => {
    const loop: unknown[] = [];
    loop.push(loop);
    const deep = JSON.parse(`${"[".repeat(50_000)}${"]".repeat(50_000)}`) as unknown;
    for (const value of [loop, deep, Object.create(null), () => 1, Symbol("s")]) {
      expect(quote(value)).toMatch(/^".*"$/);
    }
  });

  it("is short and harmless for any text", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 300 }), fc.integer({ min: 1, max: 60 }), (text, max) => {
        const quoted = quote(text, max);
        expect(quoted.length).toBeLessThanOrEqual(max + 3);
        expect(quoted).not.toMatch(/\p{Cs}/u);
      }),
    );
  });
});

describe("a redactor", () => {
  it("masks the values that were added, the longer before the shorter", () => {
    const redactor = new Redactor();
    for (const value of ["abcdef", "abcdef-123456", "$&$1-value"]) redactor.add(value);
    expect(redactor.redact("abcdef-123456, abcdef and $&$1-value, abcde")).toBe(`${MASK}, ${MASK} and ${MASK}, abcde`);
  });

  it("leaves values under six characters alone, which would mask half of a text", () => {
    const redactor = new Redactor();
    redactor.add("");
    redactor.add("token");
    expect(redactor.redact("the token is empty")).toBe("the token is empty");
  });

  it.each([
    ["Authorization: Bearer abc.def-123~+/==", `Authorization: Bearer ${MASK}`],
    ["authorization: bearer   abcdef", `authorization: bearer   ${MASK}`],
    ["Basic dXNlcjpwYXNz", `Basic ${MASK}`],
    ["DPoP eyJhbGci.abc", `DPoP ${MASK}`],
    ['{"access_token":"a\\"b","x":1}', `{"access_token":"${MASK}","x":1}`],
    ['{"client_secret" : "cut in the mid', `{"client_secret" : "${MASK}`],
    [
      "grant_type=x&refresh_token=r1&code=c2&code_verifier=v3 end",
      `grant_type=x&refresh_token=${MASK}&code=${MASK}&code_verifier=${MASK} end`,
    ],
    ["token eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJl!", `token ${MASK}!`],
    ["https://user:p@ss@host.example/x", `https://${MASK}@host.example/x`],
    ['"authorization": "bearer opensesame"', `"authorization": "bearer ${MASK}"`],
  ])("masks by shape: %s", (text, expected) => {
    expect(new Redactor().redact(text)).toBe(expected);
  });

  it.each([
    ...["https://host.example/a@b?mail=a@b", "error_code=12", "the bearer of bad news"],
    ...["use Basic authentication, not Bearer authentication.", 'Bearer resource_metadata="https://host.example/"'],
    ...["agentauth login https://mcp.example/mcp --dpop required", '{"code":"bad_request"}', "eyJ is how they begin"],
  ])("leaves alone: %s", (text) => {
    expect(new Redactor().redact(text)).toBe(text);
  });

  it("masks every known value in any text, and changes nothing the second time", () => {
    const value = fc.stringMatching(/^[\w\-.~+/=]{6,40}$/);
    fc.assert(
      fc.property(fc.array(value, { minLength: 1, maxLength: 4 }), fc.array(fc.string()), (values, texts) => {
        const redactor = new Redactor();
        for (const known of values) redactor.add(known);
        const text = values.map((known, index) => `${texts[index] ?? ""} ${known} `).join("");
        const redacted = redactor.redact(text);
        for (const known of values) expect(redacted).not.toContain(known);
        expect(redactor.redact(redacted)).toBe(redacted);
      }),
    );
  });

  it.each(["-eyJ", "bearer ", "//a", '"access_token"', "code=", "eyJaaaaaaaa.", "//a@", '"client_secret":"\\"'])(
    "does not take quadratic time for a text of nothing but %s",
    (part) => {
      // Half a megabyte: linear work is over in a blink, quadratic work outlasts the time that a test is given.
      expect(new Redactor().redact(part.repeat(500_000 / part.length))).not.toBe("");
    },
  );

  it("does not print what it knows", () => {
    const redactor = new Redactor();
    redactor.add("hunter22hunter22");
    expect(
      inspect(redactor, { showHidden: true, depth: 9 }) + JSON.stringify(redactor) + String(redactor),
    ).not.toContain("hunter22");
  });
});

describe("a secret", () => {
  it("never prints; only `reveal` gives it", () => {
    const secret = new Secret("hunter22");
    const shown = [
      String(secret),
      `${secret}`,
      `x${String(secret)}`,
      JSON.stringify({ secret, list: [secret] }),
      inspect(secret),
      inspect({ deep: { er: { secret } } }, { depth: 9, showHidden: true }),
      inspect(secret, { customInspect: false, showHidden: true }),
      JSON.stringify(Object.entries(secret)),
      JSON.stringify(structuredClone(secret)),
    ];
    for (const text of shown) expect(text).not.toContain("hunter22");
    expect(shown[0]).toBe(SECRET_MASK);
    expect(shown[3]).toBe(JSON.stringify({ secret: SECRET_MASK, list: [SECRET_MASK] }));
    expect(secret.reveal()).toBe("hunter22");
  });

  it("gets into no header by mistake", async () => {
    const authorization = `Bearer ${new Secret("hunter22")}`;
    await expect(fetch("http://127.0.0.1:9", { headers: { authorization } })).rejects.toThrow(TypeError);
    expect(() => new Headers({ authorization })).toThrow(TypeError);
    expect(() => request("http://127.0.0.1:9", { headers: { authorization } })).toThrow(TypeError);
  });
});

describe("an object with a client secret", () => {
  it("prints and serialises masked, and gives the secret by name", () => {
    const details = { auth_profile: "mcp", client_secret: "hunter22", title: "t" };
    const hidden = hideClientSecret(details);
    expect(hidden).toBe(details);
    expect(hidden.client_secret).toBe("hunter22");
    expect(Object.keys(hidden)).toEqual(["auth_profile", "client_secret", "title"]);
    expect(JSON.parse(JSON.stringify({ hidden }))).toEqual({ hidden: { ...details, client_secret: MASK } });
    for (const text of [inspect(hidden), inspect([{ hidden }], { depth: 9, showHidden: true })]) {
      expect(text).not.toContain("hunter22");
      expect(text).toContain(MASK);
    }
  });

  it("shows whether there is one: null and absent stay as they are", () => {
    expect(JSON.stringify(hideClientSecret({ client_secret: null }))).toBe('{"client_secret":null}');
    expect(JSON.stringify(hideClientSecret({ title: "t" }))).toBe('{"title":"t"}');
    expect(inspect(hideClientSecret({ title: "t" }))).toContain("title: 't'");
    expect(JSON.stringify(hideClientSecret({ client_secret: { value: "hunter22" } }))).not.toContain("hunter22");
  });
});
