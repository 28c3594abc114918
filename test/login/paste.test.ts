import { PassThrough } from "node:stream";
import { describe, expect, test } from "vitest";
import { checkPaste, type PasteRules, readPaste } from "../../src/login/paste.js";
import { fc } from "../helpers/properties.js";
import { rejection } from "../helpers/service.js";
import { STATE } from "./support.js";

const URI = "http://127.0.0.1:49152/callback";
const RULES: PasteRules = {
  redirectUri: URI,
  state: STATE,
  loginUrl: "https://issuer.example/authorize?client_id=x",
  allowBareCode: true,
};
const RIGHT = `${URI}?code=c0de-42&state=${STATE}`;
const WHOLE = "copy the whole address from the address bar of the browser, after the login";
const NO_STATE = `it has no state: ${WHOLE}`;
const WRONG_STATE = "its state is not the one of this login (state mismatch): open the address above, not an older one";
const notAt = (where: string) =>
  `it is not the redirect address: the browser ended up at "${where}", not at ${URI}; does the issuer have only the first for this client?`;
const ELSEWHERE = `it is not the redirect address, which begins with ${URI}?`;
const PART = `it is only a part of the address: ${WHOLE}`;
const NO_CODE = `it is neither the redirect address nor a code: ${WHOLE}`;
const NO_ADDRESS = `it is not an address: ${WHOLE}`;
const USER = "it contains a user name or password";

function reasonOf(line: string, rules: Partial<PasteRules> = {}): string {
  const verdict = checkPaste(line, { ...RULES, ...rules });
  if (verdict === undefined || !("reason" in verdict)) throw new Error("expected a reason");
  return verdict.reason;
}

function takenFrom(line: string, rules: Partial<PasteRules> = {}): Record<string, string> {
  const verdict = checkPaste(line, { ...RULES, ...rules });
  if (verdict === undefined || !("parameters" in verdict)) throw new Error(`not taken: ${JSON.stringify(verdict)}`);
  return Object.fromEntries(verdict.parameters);
}

describe("a pasted line", () => {
  test.each([
    RIGHT,
    `  ${RIGHT}  `,
    ` "${RIGHT}" `,
    `'${RIGHT}'`,
    `<${RIGHT}>`,
    `< ${RIGHT} >`,
    RIGHT.slice("http://".length),
    `${RIGHT}#_=_`,
  ])("%j is the callback", (line) => {
    expect(takenFrom(line, { allowBareCode: false })).toEqual({ code: "c0de-42", state: STATE });
  });

  test("is one with an https address of the user's own, also without its scheme", () => {
    const redirectUri = "https://dev.example/cb";
    for (const line of [redirectUri, "dev.example/cb"])
      expect(takenFrom(`${line}?code=c&state=${STATE}`, { redirectUri })).toMatchObject({ code: "c" });
    expect(reasonOf(`http://dev.example/cb?code=c&state=${STATE}`, { redirectUri })).toContain(redirectUri);
  });

  test("is the callback also with an issuer or with an error", () => {
    expect(takenFrom(`${RIGHT}&iss=https://issuer.example`)).toMatchObject({ iss: "https://issuer.example" });
    expect(takenFrom(`${URI}?error=access_denied&state=${STATE}`)).toEqual({ error: "access_denied", state: STATE });
  });

  test.each([
    [`${URI}?code=c0de-42`, NO_STATE],
    [`${URI}?code=c0de-42&state=other`, WRONG_STATE],
    [`${URI}?code=c0de-42&state=${STATE}x`, WRONG_STATE],
    [`${URI}?state=${STATE}`, `it has neither a code nor an error: ${WHOLE}`],
    [`${RIGHT}&state=${STATE}`, "it contains state more than once"],
    [`${RIGHT}&code=x`, "it contains code more than once"],
    [`${RIGHT}&iss=a&iss=b`, "it contains iss more than once"],
    [`https://127.0.0.1:49152/callback?code=c&state=${STATE}`, notAt("https://127.0.0.1:49152/callback")],
    [`http://127.0.0.1:49153/callback?code=c&state=${STATE}`, notAt("http://127.0.0.1:49153/callback")],
    [`http://localhost:49152/callback?code=c&state=${STATE}`, notAt("http://localhost:49152/callback")],
    [`http://127.0.0.1:49152/other?code=c&state=${STATE}`, notAt("http://127.0.0.1:49152/other")],
    [`https://evil.example/callback?code=c&state=${STATE}`, notAt("https://evil.example/callback")],
    ["https://evil.example/s3cret?code=c&state=other", ELSEWHERE],
    ["https://issuer.example/other?client_id=x", ELSEWHERE],
    ["https://other.example/authorize?client_id=x", ELSEWHERE],
    [`http://me@127.0.0.1:49152/callback?code=c&state=${STATE}`, USER],
    [`http://:pw@127.0.0.1:49152/callback?code=c&state=${STATE}`, USER],
    [
      "https://issuer.example/authorize?client_id=x",
      `it is the login address, not the one where the browser ends up: ${WHOLE}`,
    ],
    [`?code=c0de-42&state=${STATE}`, PART],
    [`code=c0de-42&state=${STATE}`, PART],
    [`state=${STATE}`, PART],
    ["error=access_denied", PART],
    [`x"${RIGHT}"`, PART],
    [`"${RIGHT}"x`, PART],
    [`x<${RIGHT}>`, PART],
    [`<${RIGHT}>x`, PART],
    ["two words", NO_ADDRESS],
    ["cöde", NO_ADDRESS],
    ["yes", NO_CODE],
    ["SplxlOBeZQQYbYS", NO_CODE],
    ["i-have-logged-in-now", NO_CODE],
    ["c\u001b[31mode", NO_ADDRESS],
  ])("%j is not taken: %s", (line, reason) => {
    const given = reasonOf(line);
    expect(given).toBe(reason);
    expect(given).not.toMatch(/c0de-42|st_0123/);
  });

  test("that is a bare code counts only where that is allowed", () => {
    for (const code of ["4/0Ab_c-d.e~f0gh==", "SplxlOBeZQQYbYS6", "i-have-logged-1n", "i-have-logged-In"])
      expect(takenFrom(code)).toEqual({ code, state: STATE });
    expect(reasonOf("4/0Ab_c-d.e~f0gh==", { allowBareCode: false })).toBe(
      "a bare code is not possible here, because nothing would show that it belongs to this login and this server " +
        `(that requires PKCE, and a server that does not return iss): ${WHOLE}`,
    );
  });

  test("that is longer than any address is not taken", () => {
    const longest = `${RIGHT}&x=`.padEnd(16_384, "x");
    expect(takenFrom(longest)).toMatchObject({ code: "c0de-42" });
    expect(reasonOf(`${longest}x`)).toBe("it is longer than 16384 characters");
  });

  test("that is blank is nothing", () => {
    for (const line of ["", "  ", '""']) expect(checkPaste(line, RULES)).toBeUndefined();
  });

  test("of any kind carries the right state or is not taken", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), fc.webQueryParameters(), (text, query) => {
        for (const line of [text, `${URI}?${query}`, `${URI}${text}`]) {
          const verdict = checkPaste(line, { ...RULES, allowBareCode: false });
          expect(verdict).toSatisfy((given) => given === undefined || "reason" in given);
        }
      }),
      { numRuns: 200 },
    );
  });
});

describe("reading pasted lines", () => {
  function reading(input = new PassThrough(), onHelp?: () => void) {
    const said: string[] = [];
    const controller = new AbortController();
    const pasted = readPaste({
      ...RULES,
      allowBareCode: false,
      input,
      say: (text) => said.push(text),
      onInterrupt: () => said.push("interrupted"),
      onHelp,
      signal: controller.signal,
    });
    return { input, said, controller, pasted };
  }

  test("continues after every rejected one, and says why", async () => {
    const { input, said, pasted } = reading();
    input.write(`SplxlOBeZQQYbYS6WxSbIA\n\n${URI}?code=x&state=wrong\r\n${URI}?co`);
    await expect.poll(() => said.length).toBe(2);
    expect(said[0]).toMatch(/not accepted.*bare code.*Still waiting/);
    expect(said[1]).toMatch(/not accepted.*state mismatch.*Still waiting/);
    input.write(`de=c0de-42&state=${STATE}\nignored\n`);
    expect((await pasted).get("code")).toBe("c0de-42");
    expect(said).toHaveLength(2);
  });

  test("gives the input back", async () => {
    const { input, pasted } = reading();
    input.write(`${RIGHT}\n`);
    await pasted;
    expect(input.isPaused()).toBe(true);
    expect(input.destroyed).toBe(false);
    expect([input.listenerCount("data"), input.listenerCount("end")]).toEqual([0, 0]);
  });

  test("ends with the signal and gives the input back", async () => {
    const { input, controller, pasted } = reading();
    controller.abort();
    expect(await rejection(pasted)).toMatchObject({ code: "aborted" });
    expect(input.isPaused()).toBe(true);
    const late = readPaste({ ...RULES, input, say: () => {}, onInterrupt: () => {}, signal: controller.signal });
    expect(await rejection(late)).toMatchObject({ code: "aborted" });
  });

  test("ends where the input ends, breaks or has ended before", async () => {
    const ended = reading();
    ended.input.end("bare-code\n");
    const expected = {
      code: "login_required",
      class: "auth",
      message: "the input ended before the redirect address was pasted",
      hint: "run the program in a terminal",
      remedy: { action: "configure", option: "flow" },
    };
    expect(await rejection(ended.pasted)).toMatchObject(expected);
    const broken = reading();
    broken.input.destroy(new Error("gone"));
    expect(await rejection(broken.pasted)).toMatchObject(expected);
    for (const { input } of [ended, broken]) expect(await rejection(reading(input).pasted)).toMatchObject(expected);
  });

  test("keeps the program running while it reads, and no longer", async () => {
    const calls: string[] = [];
    const input = Object.assign(new PassThrough(), {
      ref: () => calls.push("ref"),
      unref: () => calls.push("unref"),
    });
    const { pasted } = reading(input);
    expect(calls).toEqual(["ref"]);
    input.write(`${RIGHT}\n`);
    await pasted;
    expect(calls).toEqual(["ref", "unref"]);
  });

  test("takes ? for a question only where there is an answer, and until the callback is there", async () => {
    const { input, said } = reading();
    input.write("?\n");
    await expect.poll(() => said).toEqual([`That was not accepted: ${NO_CODE}. Still waiting.`]);
    let helped = 0;
    const other = reading(new PassThrough(), () => helped++);
    other.input.write(` ? \n${RIGHT}\n?\n`);
    await other.pasted;
    expect([helped, other.said]).toEqual([1, []]);
  });

  test("from a terminal goes key by key, shows nothing, and hands Ctrl-C on", async () => {
    const modes: boolean[] = [];
    const terminal = Object.assign(new PassThrough(), { setRawMode: (isRaw: boolean) => modes.push(isRaw) });
    const { said, pasted } = reading(terminal);
    terminal.write("\x03");
    await expect.poll(() => said).toEqual(["interrupted"]);
    // Longer than a terminal's own line may be.
    terminal.write(`${URI}?code=${"x".repeat(6_000)}&state=${STATE}\r`);
    expect((await pasted).get("code")).toHaveLength(6_000);
    expect(modes).toEqual([true, false]);
  });
});
