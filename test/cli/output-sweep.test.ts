import * as oauth from "oauth4webapi";
import stringWidth from "string-width";
import { describe, expect, it } from "vitest";
import { readText } from "../../src/cli/clients/http-error.js";
import { doctorText } from "../../src/cli/commands/doctor/run.js";
import { terminalText } from "../../src/cli/commands/request/run.js";
import { formatError } from "../../src/cli/output/errors.js";
import { printObject } from "../../src/cli/output/writer.js";
import { toUsageError } from "../../src/cli/runtime/usage-error.js";
import { AgentAuthError } from "../../src/errors.js";
import { deviceText } from "../../src/login/browser.js";
import { loginText } from "../../src/login/messages.js";
import { oauthError } from "../../src/oauth/http/oauth-error.js";
import { FORMATS } from "../../src/profile/settings.js";
import { quote, Redactor, shellWord } from "../../src/redact.js";
import { createMemoryIo, type MemoryIoOptions } from "../helpers/memory-io.js";
import { everyText, unsafeCharacters } from "../helpers/unsafe.js";
import { parseCsv, print, TERMINAL } from "./output/printing.js";

const TEXTS = everyText(256);
const OUTPUTS: readonly [string, MemoryIoOptions][] = [
  ["a terminal", { ...TERMINAL, columns: 1000 }],
  ["a pipe", {}],
];
const redactor = new Redactor();
const plain = createMemoryIo().stderr.colors;

/** Everything of Unicode in each place of an error that a server's words can come to. */
function errorsOf(text: string): AgentAuthError[] {
  const quoted = `the server said ${quote(text, 100_000)}`;
  const foreign = { class: "remote", hint: text, url: text, requestId: text, cause: new Error(text) } as const;
  return [new AgentAuthError(text, text, foreign), new AgentAuthError("usage", quoted, { class: "usage" })];
}

describe("no character of all Unicode that a terminal acts on goes out raw", () => {
  it.each(OUTPUTS)("in what is said to a user, on %s", async (_where, options) => {
    const io = createMemoryIo({ ...options, verbose: true });
    for (const text of TEXTS) {
      io.say(text);
      io.verbose(`a step: ${text}`);
      io.warn(text);
    }
    await io.stderr.write("");
    expect(unsafeCharacters(io.err(), "\n")).toEqual([]);
  });

  it("in a line of progress", async () => {
    const io = createMemoryIo({ tty: true, columns: 1000, env: { NO_COLOR: "1" } });
    const progress = io.progress();
    for (const text of TEXTS) progress.update(text);
    progress.stop();
    await io.stderr.write("");
    expect(io.err().length).toBeGreaterThan(300_000);
    expect(unsafeCharacters(io.err().replaceAll("\r\u001b[2K", ""), "")).toEqual([]);
  });

  it.each([false, true])("in an error, with its causes, as JSON: %s", (json) => {
    for (const text of TEXTS) {
      for (const error of errorsOf(text)) {
        const reported = formatError(error, { json, colors: plain, redactor, debug: true });
        expect(unsafeCharacters(reported, "\n")).toEqual([]);
        if (json) expect(JSON.parse(reported)).toMatchObject({ error: { class: error.class } });
      }
    }
  });

  it("in what an authorization server says of its no", () => {
    for (const text of TEXTS) {
      const cause = { error: text, error_description: text };
      const thrown = new oauth.ResponseBodyError("no", { cause, response: new Response("", { status: 400 }) });
      const error = oauthError(thrown, "https://as.example/token");
      expect(error).toMatchObject({ name: "AgentAuthError", class: "remote" });
      const reported = formatError(error, { json: false, colors: plain, redactor });
      expect(unsafeCharacters(reported, "\n")).toEqual([]);
    }
  });

  it("in a complaint of the parser", () => {
    for (const text of TEXTS) {
      for (const message of [
        `error: unknown option '--${text}'`,
        `error: unknown command '${text}'\n(Did you mean x?)`,
      ]) {
        const error = toUsageError(Object.assign(new Error(message), { exitCode: 1 }) as never);
        expect(unsafeCharacters(formatError(error, { json: false, colors: plain, redactor }), "\n")).toEqual([]);
      }
    }
  });

  it.each(OUTPUTS)("in one object, as any format, on %s", async (_where, options) => {
    const value = { id: "one", texts: Object.fromEntries(TEXTS.map((text, index) => [`${index} ${text}`, text])) };
    for (const format of FORMATS.filter((one) => options.tty || one !== "csv")) {
      const io = createMemoryIo(options);
      await printObject(format, value, {}, { io, now: Date.now });
      const out = format === "csv" ? io.out().replaceAll("\r\n", "\n") : io.out();
      expect([format, unsafeCharacters(out, format === "plain" ? "\n\t" : "\n")]).toEqual([format, []]);
    }
  });

  it("in a tool's text, and in an answer's body", () => {
    const content = TEXTS.map((text) => ({ type: "text", text }));
    expect(unsafeCharacters(readText({ content }), "\n")).toEqual([]);
    expect(unsafeCharacters(readText({ content: TEXTS.map((type) => ({ type })) }), "\n")).toEqual([]);
    const bytes = Buffer.from(TEXTS.join(" "));
    const text = terminalText();
    const shown = Array.from({ length: Math.ceil(bytes.length / 997) }, (_, index) =>
      text.push(bytes.subarray(index * 997, (index + 1) * 997)),
    );
    expect(unsafeCharacters(shown.join("") + text.end())).toEqual([]);
  });

  it("in the report of doctor", async () => {
    for (const [index, text] of TEXTS.entries()) {
      // Cells are swept above, and the library of the table takes 4 ms for each of these long ones.
      const settings = index % 8 === 0 ? [{ name: "x", value: text, source: text }] : [];
      const report = {
        version: "0",
        node: "0",
        platform: "test",
        checks: [{ name: "x", state: "failed", found: text, hint: text, code: 1 } as const],
        settings,
      };
      expect(unsafeCharacters(doctorText(report as never, plain), "\n")).toEqual([]);
    }
  });

  it("in what is said before a login: no user is sent to such an address, and shown no such code", () => {
    const url = "https://as.example/authorize";
    for (const text of TEXTS) {
      expect(unsafeCharacters(loginText(`https://mcp.example/${text}`, `${url}?x=${text}`), "\n")).toEqual([]);
      const prompts = [
        { verificationUri: url, userCode: text },
        { verificationUri: `${url}?x=${text}`, userCode: "ABCD" },
        { verificationUri: url, verificationUriComplete: `${url}?x=${text}`, userCode: "ABCD" },
      ];
      for (const prompt of prompts) {
        let shown = "";
        try {
          shown = deviceText({ verificationUriComplete: undefined, expiresInSeconds: 60, ...prompt });
        } catch (error) {
          shown = formatError(error, { json: false, colors: plain, redactor });
          expect(error).toMatchObject({ class: "refused" });
        }
        expect(unsafeCharacters(shown, "\n")).toEqual([]);
      }
    }
  });

  it("in a word for a shell", () => {
    for (const text of TEXTS) expect(unsafeCharacters(shellWord(text), "")).toEqual([]);
  });
});

describe("what programs read", () => {
  const items = everyText(256).map((title, index) => ({ id: `i${index}`, title, [`key ${title}`]: [title] }));
  const wellFormed = items.filter(({ title }) => !/\p{Cs}/u.test(title));

  it.each(OUTPUTS)("parses back equal, on %s", async (_where, io) => {
    expect(JSON.parse((await print("json", items, { io })).out)).toEqual(items);
    const lines = (await print("ndjson", items, { io })).out.trimEnd().split("\n");
    expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual(items);
  });

  it("parses back equal from CSV", async () => {
    const flags = { columnsFlag: "id,title", noHeader: true, csvRaw: true };
    const { out } = await print("csv", wellFormed, { flags });
    expect(parseCsv(out)).toEqual(wellFormed.map(({ id, title }) => [id, title]));
  });

  it("has its piles of marks escaped, and parses back equal", async () => {
    const pile = [{ title: `e${"\u0301".repeat(1000)}x` }];
    const { out } = await print("json", pile);
    expect(unsafeCharacters(out)).toEqual([]);
    expect(JSON.parse(out)).toEqual(pile);
  });
});

/** The blanks are counted apart: there are letters that join with a blank after them where a whole line is measured. */
function widthBefore(line: string, mark: string): number {
  const before = line.slice(0, line.lastIndexOf(mark));
  return stringWidth(before.trimEnd()) + before.length - before.trimEnd().length;
}

describe("the columns of a table", () => {
  it("stay in line whatever is in a title", async () => {
    const items = everyText(32).map((title, index) => ({ id: `i${index}`, title, status: "<status>" }));
    const { out } = await print("table", items, { flags: { columnsFlag: "title,status", noHeader: true } });
    const lines = out.trimEnd().split("\n");
    expect(lines).toHaveLength(items.length);
    let before = 0;
    for (let start = 0; start < lines.length; start += 200) {
      const ends = new Set(lines.slice(start, start + 200).map((line) => widthBefore(line, "<status>")));
      expect(ends.size).toBe(1);
      // A column grows with what comes later, and does not shrink.
      expect(Math.min(...ends)).toBeGreaterThanOrEqual(before);
      before = Math.max(...ends);
    }
  });
});
