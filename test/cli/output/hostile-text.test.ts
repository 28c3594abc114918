import { once } from "node:events";
import { describe, expect, it } from "vitest";
import { collect, linesOf, runCli, startCli, temporaryFolder, until } from "../../helpers/cli.js";
import { type Scene, startScene } from "../../helpers/issuer.js";
import { unsafeCharacters } from "../../helpers/unsafe.js";
import { loginUrlIn } from "../../hostile/kit/user.js";
import { parseCsv } from "./printing.js";
import { items, startUnicodeService } from "./unicode-service.js";

describe("a service whose every text is made of all of Unicode", () => {
  it.each(["table", "wide", "plain", "id", "json", "ndjson"])("is harmless as %s", async (format) => {
    const { origin } = await startUnicodeService();
    const { code, stdout, stderr } = await runCli(["devices", "list", "--pool", "p", "-o", format], {
      env: { AGENTAUTH_BASE_URL: origin, AGENTAUTH_API_TOKEN: "token-of-a-test" },
    });
    expect([code, stdout.length > items.length]).toEqual([0, true]);
    expect(unsafeCharacters(stdout, format === "plain" ? "\n\t" : "\n")).toEqual([]);
    expect(unsafeCharacters(stderr, "\n")).toEqual([]);
    if (format === "json") expect(JSON.parse(stdout)).toEqual(items);
    if (format === "ndjson") expect(linesOf(stdout).map((line) => JSON.parse(line) as unknown)).toEqual(items);
  });

  it.for(["table", "plain"])("is harmless as one object: %s", async (format) => {
    const { origin } = await startUnicodeService();
    const env = { AGENTAUTH_BASE_URL: origin, AGENTAUTH_API_TOKEN: "token-of-a-test" };
    const { code, stdout, stderr } = await runCli(["devices", "get", "dev_1", "--pool", "p", "-o", format], { env });
    expect([code, unsafeCharacters(stdout), unsafeCharacters(stderr, "\n")]).toEqual([0, [], []]);
  });

  it("parses back equal from CSV, and with --csv-raw byte by byte", async () => {
    const { origin } = await startUnicodeService();
    const env = { AGENTAUTH_BASE_URL: origin, AGENTAUTH_API_TOKEN: "token-of-a-test" };
    const args = ["devices", "list", "--pool", "p", "-o", "csv", "--columns", "id,title", "--no-header"];
    const raw = await runCli([...args, "--csv-raw"], { env });
    expect(parseCsv(raw.stdout)).toEqual(items.map(({ id, title }) => [id, title]));
    const guarded = parseCsv((await runCli(args, { env })).stdout);
    expect(guarded.map(([id, title = ""], index) => [id, title.slice(title === items[index]?.title ? 0 : 1)])).toEqual(
      items.map(({ id, title }) => [id, title]),
    );
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
      (issuer.routes["/pool/register"] = { status: 400, json: { error: text, error_description: text } }),
  ],
  [
    "a refused code",
    ({ issuer }, text) =>
      (issuer.routes["/pool/token"] = { status: 400, json: { error: text, error_description: text, error_uri: text } }),
  ],
  ["a token's scope", ({ issuer }, text) => (issuer.tokenAnswer = { scope: text })],
  ["a token's type", ({ issuer }, text) => (issuer.tokenAnswer = { token_type: text })],
  ["a token", ({ issuer }, text) => (issuer.tokenAnswer = { access_token: text })],
  [
    "a denied sign-in",
    ({ issuer }, text) => {
      issuer.routes["/pool/authorize"] = ({ url }) => {
        const requested = new URL(url, issuer.origin).searchParams;
        const query = new URLSearchParams({
          error: text,
          error_description: text,
          state: requested.get("state") ?? "",
        });
        return { status: 302, headers: { location: `${requested.get("redirect_uri")}?${query}` }, text: "" };
      };
    },
  ],
];

/** Runs a login whose user goes where the printed address leads, if one is printed, and reads the last page. */
async function loggedIn(args: readonly string[], env: Record<string, string>) {
  const run = startCli([...args, "--browser", "none"], { env });
  const ended = once(run, "close");
  const [out, err] = [collect(run.stdout), collect(run.stderr)];
  await until(() => loginUrlIn(err()) !== undefined || run.exitCode !== null);
  const address = loginUrlIn(err());
  if (address) await fetch(address).then((page) => page.text());
  await ended;
  return { stdout: out(), stderr: err() };
}

describe("a server that puts hostile text into its answers", () => {
  it.each(PLACES)("as %s: nothing of it reaches the terminal raw, or begins a line", async (_place, spoil) => {
    const scene = await startScene();
    spoil(scene, HOSTILE);
    const env = { AGENTAUTH_HOME: temporaryFolder() };
    for (const [name, { stdout, stderr }] of [
      ["discover", await runCli(["discover", scene.mcp.url, "-o", "table"], { env })],
      ["login", await loggedIn(["login", scene.mcp.url, "--debug"], env)],
    ] as const) {
      const printed = [name, unsafeCharacters(stdout, "\n"), unsafeCharacters(stderr, "\n")];
      expect(printed).toEqual([name, [], []]);
      expect(`\n${stdout}\n${stderr}`).not.toMatch(/\n(?:error: |hint: )?forged/);
    }
  });
});
