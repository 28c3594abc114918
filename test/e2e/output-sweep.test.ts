import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { shellWord } from "../../src/redact.js";
import { parseCsv } from "../cli/output/printing.js";
import { BIN, cleanEnv, collect, linesOf, runCli, temporaryFolder } from "../helpers/cli.js";
import { type Scene, startScene } from "../helpers/issuer.js";
import { sendJson, startServer, type TestServer } from "../helpers/server.js";
import { MadeService } from "../helpers/service.js";
import { everyText, unsafeCharacters } from "../helpers/unsafe.js";

const ESC = "\u001b";
const script = process.platform === "linux" && spawnSync("script", ["--version"]).status === 0;
/** A person's browser, as a command: goes where the address leads and reads the page there. */
const BROWSER = `"${process.execPath}" -e "fetch(process.argv[1]).then((page) => page.text())"`;

// A lone surrogate has no form in UTF-8, and so none in a file.
const items = everyText(256)
  .filter((text) => !/\p{Cs}/u.test(text))
  .map((text, index) => ({
    id: `dev_${index}`,
    title: text,
    status: text,
    session_type: "mcp",
    last_seen: { at: 1_700_000_000, city: text, user_agent: text },
    dynamic_client_details: { title: text, redirect_uris: [text] },
  }));

/** A service whose every text is made of all of Unicode; pools and domains have the same items. */
function startService(): Promise<TestServer> {
  const made = new MadeService(0);
  made.items = items;
  return startServer((response, { url }) => {
    const { pathname, searchParams: query } = new URL(url, "http://x");
    if (!pathname.endsWith("/device")) made.items = items.slice(0, 1);
    else made.items = items;
    const { items: summaries, ...page } = made.page(
      Number(query.get("pagination[offset]") ?? 0),
      Number(query.get("pagination[page_size]") ?? 300),
    );
    sendJson(response, { status: "success", summaries, ...page, sorting: { field: "id", direction: "asc" } });
  });
}

async function onTerminal(args: readonly string[], env: Record<string, string>) {
  const command = [process.execPath, BIN, ...args].map(shellWord).join(" ");
  const child = spawn("script", ["-qec", command, "/dev/null"], { env: cleanEnv(env), stdio: "pipe" });
  const out = collect(child.stdout);
  const [code] = (await once(child, "close")) as [number | null];
  return { code, stdout: out() };
}

describe("a service whose every text is made of all of Unicode", () => {
  it.each(["table", "wide", "plain", "id", "json", "ndjson", "yaml"])("is harmless as %s", async (format) => {
    const { origin } = await startService();
    const { code, stdout, stderr } = await runCli(["devices", "list", "--pool", "p", "-o", format], {
      env: { AGENTAUTH_BASE_URL: origin, AGENTAUTH_API_TOKEN: "token-of-a-test" },
    });
    expect([code, stdout.length > items.length]).toEqual([0, true]);
    expect(unsafeCharacters(stdout, format === "plain" ? "\n\t" : "\n")).toEqual([]);
    expect(unsafeCharacters(stderr, "\n")).toEqual([]);
    if (format === "json") expect(JSON.parse(stdout)).toEqual(items);
    if (format === "ndjson") expect(linesOf(stdout).map((line) => JSON.parse(line) as unknown)).toEqual(items);
    if (format === "yaml") expect(parse(stdout)).toEqual(items);
  });

  it("is harmless as a tree and as one object", async () => {
    const { origin } = await startService();
    const env = { AGENTAUTH_BASE_URL: origin, AGENTAUTH_API_TOKEN: "token-of-a-test" };
    const tree = ["tree", "--account", "a", "--limit", String(items.length), "-o"];
    const get = ["devices", "get", "dev_1", "--pool", "p", "-o"];
    for (const args of [...["table", "plain", "json"].map((o) => [...tree, o]), [...get, "table"], [...get, "plain"]]) {
      const { code, stdout, stderr } = await runCli(args, { env });
      expect([args, code, unsafeCharacters(stdout), unsafeCharacters(stderr, "\n")]).toEqual([args, 0, [], []]);
    }
  });

  it("parses back equal from CSV, and with --csv-raw byte by byte", async () => {
    const { origin } = await startService();
    const env = { AGENTAUTH_BASE_URL: origin, AGENTAUTH_API_TOKEN: "token-of-a-test" };
    const args = ["devices", "list", "--pool", "p", "-o", "csv", "--columns", "id,title", "--no-header"];
    const raw = await runCli([...args, "--csv-raw"], { env });
    expect(parseCsv(raw.stdout)).toEqual(items.map(({ id, title }) => [id, title]));
    const guarded = parseCsv((await runCli(args, { env })).stdout);
    expect(guarded.map(([id, title = ""], index) => [id, title.slice(title === items[index]?.title ? 0 : 1)])).toEqual(
      items.map(({ id, title }) => [id, title]),
    );
  });

  it.skipIf(!script)("is harmless on a terminal, where only our own colours are escape sequences", async () => {
    const { origin } = await startService();
    const env = {
      AGENTAUTH_BASE_URL: origin,
      AGENTAUTH_API_TOKEN: "token-of-a-test",
      COLUMNS: "200",
      NO_COLOR: "1",
      PAGER: "cat",
    };
    for (const format of ["table", "json", "csv"]) {
      const args = ["devices", "list", "--pool", "p", "-o", format];
      const { code, stdout } = await onTerminal(args, { ...env, TERM: "dumb" });
      expect([format, code, unsafeCharacters(stdout.replace(/\r+\n/g, "\n"))]).toEqual([format, 0, []]);
    }
    const { stdout } = await onTerminal(["devices", "list", "--pool", "p"], { ...env, TERM: "xterm", NO_COLOR: "" });
    // Bold, dim, a colour or its end; a line of progress taken away. No address is made a link.
    const ours = new RegExp(`${ESC}\\[(?:1|2|3\\d|22|39)m|\r${ESC}\\[2K`, "g");
    expect(unsafeCharacters(stdout.replace(/\r+\n/g, "\n").replace(ours, ""))).toEqual([]);
  });
});

const HOSTILE = [
  "\u001b[31m\u001b]0;t\u0007\u001b]8;;https://evil.example\u001b\\x\u001b]52;c;YQ==\u0007\u009b2J\u0090q\u009c",
  "\u202e\u2066\u200b\u200d\u2060\ufeff\u061c\u00ad\u{e0041}\u{e0100}\u2028\u2029\u0085\u007f\b\0",
  `\r\nerror: forged\nhint: forged\r\tforged e${"\u0301".repeat(60)}`,
].join(" ");

type Spoil = (scene: Scene, text: string) => void;

/** Each place of the flow that a server can put text in. */
const PLACES: readonly (readonly [string, Spoil])[] = [
  ["the resource", ({ mcp }, text) => (mcp.metadata["resource"] = `${mcp.url}${text}`)],
  ["the authorization servers", ({ mcp }, text) => (mcp.metadata["authorization_servers"] = [`https://x/${text}`])],
  ["the resource's scopes", ({ mcp }, text) => (mcp.metadata["scopes_supported"] = ["tools", text])],
  ["the bearer methods", ({ mcp }, text) => (mcp.metadata["bearer_methods_supported"] = [text])],
  ["the issuer", ({ issuer }, text) => (issuer.metadata["issuer"] = `${issuer.issuer}${text}`)],
  [
    "the place to sign in",
    ({ issuer }, text) => (issuer.metadata["authorization_endpoint"] = `${issuer.issuer}/${text}`),
  ],
  ["the place of tokens", ({ issuer }, text) => (issuer.metadata["token_endpoint"] = text)],
  ["the challenge methods", ({ issuer }, text) => (issuer.metadata["code_challenge_methods_supported"] = [text])],
  [
    "a metadata key",
    ({ issuer }, text) =>
      (issuer.routes["/pool/.well-known/oauth-authorization-server"] = {
        headers: { "content-type": "application/json" },
        text: `{${JSON.stringify(text)}:1,${JSON.stringify(text)}:2}`,
      }),
  ],
  [
    "a media type",
    ({ issuer }) =>
      (issuer.routes["/pool/.well-known/oauth-authorization-server"] = {
        headers: { "content-type": "text/html; \u009b2J\u0085" },
        text: "<p>",
      }),
  ],
  ["a client id", ({ issuer }, text) => (issuer.registrationAnswer = { client_id: text })],
  ["a redirect address", ({ issuer }, text) => (issuer.registrationAnswer = { redirect_uris: [text] })],
  [
    "a refused registration",
    ({ issuer }, text) =>
      (issuer.routes["/pool/register"] = {
        status: 400,
        json: { error: text, error_description: text },
      }),
  ],
  [
    "a refused code",
    ({ issuer }, text) =>
      (issuer.routes["/pool/token"] = {
        status: 400,
        json: { error: text, error_description: text, error_uri: text },
      }),
  ],
  ["a token's scope", ({ issuer }, text) => (issuer.tokenAnswer = { scope: text })],
  ["a token's type", ({ issuer }, text) => (issuer.tokenAnswer = { token_type: text })],
  ["a token", ({ issuer }, text) => (issuer.tokenAnswer = { access_token: text })],
  [
    "a denied sign-in",
    ({ issuer }, text) => {
      issuer.routes["/pool/authorize"] = ({ url }) => {
        const asked = new URL(url, issuer.origin).searchParams;
        const query = new URLSearchParams({ error: text, error_description: text, state: asked.get("state") ?? "" });
        return { status: 302, headers: { location: `${asked.get("redirect_uri")}?${query}` }, text: "" };
      };
    },
  ],
];

describe("a server that puts hostile text into its answers", () => {
  it.each(PLACES)("as %s: nothing of it reaches the terminal raw, or begins a line", async (_place, spoil) => {
    const scene = await startScene();
    spoil(scene, HOSTILE);
    const env = { AGENTAUTH_HOME: temporaryFolder() };
    for (const args of [
      ["discover", scene.mcp.url, "-o", "table"],
      ["login", scene.mcp.url, "--debug", "--browser", BROWSER],
    ]) {
      const { stdout, stderr } = await runCli(args, { env });
      const told = [args[0], unsafeCharacters(stdout, "\n"), unsafeCharacters(stderr, "\n")];
      expect(told).toEqual([args[0], [], []]);
      expect(`\n${stdout}\n${stderr}`).not.toMatch(/\n(?:error: |hint: )?forged/);
    }
  });
});
