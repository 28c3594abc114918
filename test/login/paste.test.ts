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
    RIGHT.slice("http://".length),
    `${RIGHT}#_=_`,
  ])("%j is the callback", (line) => {
    expect(takenFrom(line, { allowBareCode: false })).toEqual({ code: "c0de-42", state: STATE });
  });

  test("is the callback also with an issuer or with an error", () => {
    expect(takenFrom(`${RIGHT}&iss=https://issuer.example`)).toMatchObject({ iss: "https://issuer.example" });
    expect(takenFrom(`${URI}?error=access_denied&state=${STATE}`)).toEqual({ error: "access_denied", state: STATE });
  });

  test.each([
    [`${URI}?code=c0de-42`, "no state"],
    [`${URI}?code=c0de-42&state=other`, "state mismatch"],
    [`${URI}?code=c0de-42&state=${STATE}x`, "state mismatch"],
    [`${URI}?state=${STATE}`, "neither a code nor an error"],
    [`${RIGHT}&state=${STATE}`, "contains state more than once"],
    [`${RIGHT}&code=x`, "contains code more than once"],
    [`${RIGHT}&iss=a&iss=b`, "contains iss more than once"],
    [`https://127.0.0.1:49152/callback?code=c&state=${STATE}`, "not the redirect address"],
    [`http://127.0.0.1:49153/callback?code=c&state=${STATE}`, "not the redirect address"],
    [`http://localhost:49152/callback?code=c&state=${STATE}`, "not the redirect address"],
    [`http://127.0.0.1:49152/other?code=c&state=${STATE}`, "not the redirect address"],
    [`https://evil.example/callback?code=c&state=${STATE}`, `begins with ${URI}?`],
    [`http://me@127.0.0.1:49152/callback?code=c&state=${STATE}`, "user name"],
    ["https://issuer.example/authorize?client_id=x", "the login address"],
    [`?code=c0de-42&state=${STATE}`, "only a part of the address"],
    [`code=c0de-42&state=${STATE}`, "only a part of the address"],
    [`state=${STATE}`, "only a part of the address"],
    ["two words", "not an address"],
    ["cöde", "not an address"],
    ["yes", "neither the redirect address nor a code"],
    ["SplxlOBeZQQYbYS", "neither the redirect address nor a code"],
    ["i-have-logged-in-now", "neither the redirect address nor a code"],
    ["c\u001b[31mode", "not an address"],
  ])("%j is not taken: %s", (line, reason) => {
    const given = reasonOf(line);
    expect(given).toContain(reason);
    expect(given).not.toMatch(/c0de-42|st_0123/);
  });

  test("that is a bare code counts only where that is allowed", () => {
    expect(takenFrom("4/0Ab_c-d.e~f0gh==")).toEqual({ code: "4/0Ab_c-d.e~f0gh==", state: STATE });
    expect(reasonOf("4/0Ab_c-d.e~f0gh==", { allowBareCode: false })).toMatch(/bare code is not possible.*PKCE.*iss/);
  });

  test("that is longer than any address is not taken", () => {
    expect(reasonOf(`${RIGHT}${"x".repeat(17 * 1024)}`)).toContain("longer than");
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
  function reading(input = new PassThrough()) {
    const said: string[] = [];
    const controller = new AbortController();
    const pasted = readPaste({
      ...RULES,
      allowBareCode: false,
      input,
      say: (text) => said.push(text),
      onInterrupt: () => said.push("interrupted"),
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
    expect(await rejection(ended.pasted)).toMatchObject({ code: "login_required", class: "auth" });
    const broken = reading();
    broken.input.destroy(new Error("gone"));
    expect(await rejection(broken.pasted)).toMatchObject({ code: "login_required" });
    expect(await rejection(reading(ended.input).pasted)).toMatchObject({ code: "login_required" });
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
