import { execFileSync } from "node:child_process";
import { chmodSync, existsSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { describe, expect } from "vitest";
import { tokenPath } from "../../../../src/cli/config/effective.js";
import { temporaryFolder } from "../../../helpers/cli.js";
import { ON_WINDOWS } from "../../../helpers/systems.js";
import { configTest, modeOf } from "./support.js";

const TOKEN = "tok_0123456789abcdef";
const it = configTest();
it.beforeEach(({ testbed, set }) => set("base_url", testbed.sandbox.baseUrl));

/** The reference to the token of the default profile in the settings file. */
function reference(home: string): string | undefined {
  const { profiles } = JSON.parse(readFileSync(join(home, "config.json"), "utf8")) as {
    profiles: Record<string, Record<string, string>>;
  };
  return profiles["default"]?.["api_token"];
}

/** Another service on this machine, while a test runs. */
async function withService(listener: RequestListener, test: (url: string) => Promise<void>): Promise<void> {
  const server = createServer(listener).listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  try {
    await test(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  } finally {
    server.close();
  }
}

describe("an API token", () => {
  it.skipIf(ON_WINDOWS)(
    "from stdin goes into a separate file that only the user can read, and nowhere else",
    async ({ home, run }) => {
      const { code, stdout, stderr } = await run(["config", "set", "api_token", "-"], { stdin: `${TOKEN}\n` });
      expect({ code, stdout, stderr }).toEqual({
        code: 0,
        stdout: "",
        stderr: "api_token is set in profile default\n",
      });
      const file = tokenPath(home, "default");
      expect([readFileSync(file, "utf8"), modeOf(file), modeOf(join(home, "tokens"))]).toEqual([
        `${TOKEN}\n`,
        "600",
        "700",
      ]);
      expect(reference(home)).toBe(`file:${file}`);
      expect(readFileSync(join(home, "config.json"), "utf8")).not.toContain(TOKEN);
      for (const args of [
        ["config", "list"],
        ["config", "list", "-o", "json"],
        ["config", "get", "api_token"],
      ]) {
        expect((await run(args)).stdout).not.toContain(TOKEN);
      }
    },
  );

  it("from a file, from a variable and from stdin all reach the service", async ({ testbed, home, run, set }) => {
    const { apiToken, ids } = testbed.sandbox;
    const list = ["devices", "list", "--pool", ids.pool, "-o", "id"];
    await run(["config", "set", "api_token", "-"], { stdin: `${apiToken}\n` });
    expect((await run(list)).code).toBe(0);
    await set("api_token", "env:MY_TOKEN");
    expect((await run(list, { env: { MY_TOKEN: apiToken } })).code).toBe(0);
    expect(await run(list)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("the environment variable MY_TOKEN, named by profile default, is not set"),
    });
    const folder = temporaryFolder();
    writeFileSync(join(folder, "token.txt"), apiToken, { mode: 0o600 });
    await set("api_token", `file:${join(folder, "token.txt")}`);
    expect(reference(home)).toBe(`file:${join(folder, "token.txt")}`);
    expect((await run(list)).code).toBe(0);
  });

  it("of profiles whose names differ in case, or are devices of Windows, has files with names of their own", async ({
    home,
    run,
  }) => {
    const profiles = ["work", "Work", "con", "nul", "x."];
    for (const name of profiles)
      await run(["config", "set", "api_token", "-", "--profile", name], { stdin: `tok_${name}` });
    const names = readdirSync(join(home, "tokens"));
    expect(new Set(names.map((name) => name.toLowerCase())).size).toBe(profiles.length);
    expect(names.filter((name) => !/^[0-9a-f]{40}$/.test(name))).toEqual([]);
    for (const name of profiles) expect(readFileSync(tokenPath(home, name), "utf8")).toBe(`tok_${name}\n`);
  });

  it("is removed unless another profile names its file", async ({ home, run, set }) => {
    const file = tokenPath(home, "work");
    await run(["config", "set", "api_token", "-", "--profile", "work"], { stdin: TOKEN });
    await set("api_token", `file:${file}`, "--profile", "other");
    await run(["config", "unset", "api_token", "--profile", "work"]);
    expect(readFileSync(file, "utf8")).toBe(`${TOKEN}\n`);
    await set("api_token", `file:${file}`, "--profile", "work");
    await run(["config", "unset", "api_token", "--profile", "other"]);
    expect(existsSync(file)).toBe(true);
    await run(["config", "unset", "api_token", "--profile", "work"]);
    expect(existsSync(file)).toBe(false);
  });

  it("leaves no file behind when it is replaced or unset", async ({ home, run, set }) => {
    const file = tokenPath(home, "default");
    await run(["config", "set", "api_token", "-"], { stdin: TOKEN });
    await set("api_token", "env:X");
    expect(existsSync(file)).toBe(false);
    await run(["config", "set", "api_token", "-"], { stdin: TOKEN });
    await run(["config", "unset", "api_token"]);
    expect(existsSync(file)).toBe(false);
    const own = join(temporaryFolder(), "mine");
    writeFileSync(own, TOKEN, { mode: 0o600 });
    await set("api_token", `file:${own}`);
    await run(["config", "unset", "api_token"]);
    expect(existsSync(own)).toBe(true);
  });

  it("stays with the service that it was stored for when base_url changes to another origin, with a warning", async ({
    testbed,
    home,
    run,
    set,
  }) => {
    const seen: (string | undefined)[] = [];
    await run(["config", "set", "api_token", "-"], { stdin: TOKEN });
    const file = tokenPath(home, "default");
    await withService(
      ({ headers }, response) => {
        seen.push(headers.authorization);
        response.writeHead(401).end();
      },
      async (url) => {
        await set("base_url", testbed.sandbox.baseUrl);
        expect(reference(home)).toBe(`file:${file}`);
        const { code, stderr } = await run(["config", "set", "base_url", url]);
        expect([code, reference(home)]).toEqual([0, undefined]);
        expect(stderr).toBe(
          "base_url is set in profile default\n" +
            `warning: api_token is no longer set in profile default: its token was stored for ${testbed.sandbox.baseUrl}\n` +
            "hint: store another token with agentauth config set api_token -; " +
            `to use the same token: agentauth config set api_token file:${file}\n`,
        );
        await run(["pools", "list", "--domain", "d"]);
        expect(seen).toEqual([undefined]);
        await set("api_token", `file:${file}`);
        await run(["pools", "list", "--domain", "d"]);
        expect(seen.at(-1)).toBe(`Bearer ${TOKEN}`);
      },
    );
  });

  it("does not move to another origin when base_url is unset first", async ({ testbed, home, run, set }) => {
    await set("api_token", "env:MY_TOKEN");
    const { stderr } = await run(["config", "unset", "base_url"]);
    expect(stderr).toContain(`its token was stored for ${testbed.sandbox.baseUrl}`);
    expect(reference(home)).toBeUndefined();
    await set("api_token", "env:MY_TOKEN");
    await set("base_url", "https://other.example");
    expect(reference(home)).toBe("env:MY_TOKEN");
    await set("base_url", "https://other.example/path");
    expect(reference(home)).toBe("env:MY_TOKEN");
  });

  it.for([
    ["", "is empty"],
    ["\n", "is empty"],
    ["two words", "has a blank"],
    ["two\nlines\n", "has a blank, a line break"],
    [`"${TOKEN}"`, "is in quotes"],
    [`'${TOKEN}'\n`, "is in quotes"],
    [`Bearer ${TOKEN}`, 'begins with "Bearer "'],
    [`${TOKEN}\u200b`, "not ASCII"],
  ] as const)("that is %j is refused, and what is odd is named", async ([text, why], { testbed, home, run }) => {
    const set = await run(["config", "set", "api_token", "-"], { stdin: text });
    expect([set.code, set.stderr]).toEqual([2, expect.stringContaining("the API token (from stdin) ")]);
    expect(set.stderr).toContain(why);
    expect(existsSync(join(home, "tokens"))).toBe(false);
    if (text.trim() === "") return;
    const env = { MY_TOKEN: text };
    for (const [value, source] of [
      [text, "AGENTAUTH_API_TOKEN"],
      ["env:MY_TOKEN", "AGENTAUTH_API_TOKEN, MY_TOKEN"],
    ] as const) {
      const { code, stderr } = await run(["devices", "list", "--pool", testbed.sandbox.ids.pool], {
        env: { ...env, AGENTAUTH_API_TOKEN: value },
      });
      expect([code, stderr]).toEqual([2, expect.stringContaining(`the API token (${source}) `)]);
      expect(stderr).toContain(why);
      expect(stderr).not.toContain(TOKEN);
    }
  });

  it.skipIf(ON_WINDOWS)("of a command is waited for as long as --timeout says", async ({ run, set }) => {
    await set("api_token", "exec:sleep 30");
    const { code, stderr } = await run(["devices", "list", "--pool", "p", "--timeout", "1"]);
    expect([code, stderr]).toEqual([
      5,
      expect.stringContaining('the command "sleep" of profile default did not end within 1 s'),
    ]);
  });

  it.for(["\n", "\r\n", "\n\n"])("is used without its end of line %j", async (end, { testbed, run }) => {
    const { apiToken, ids } = testbed.sandbox;
    for (const value of [`${apiToken}${end}`, `env:MY_TOKEN${end}`]) {
      const env = { AGENTAUTH_API_TOKEN: value, MY_TOKEN: `${apiToken}${end}` };
      expect((await run(["devices", "list", "--pool", ids.pool, "-o", "id"], { env })).code).toBe(0);
    }
  });

  it.skipIf(ON_WINDOWS)(
    "in a file that others can read is refused with the command that repairs it",
    async ({ testbed, run, set }) => {
      const file = join(temporaryFolder(), "it's loose");
      writeFileSync(file, testbed.sandbox.apiToken);
      chmodSync(file, 0o644);
      await set("api_token", `file:${file}`);
      const list = ["devices", "list", "--pool", testbed.sandbox.ids.pool, "-o", "id"];
      const before = testbed.deviceRequests();
      const { code, stdout, stderr } = await run(list);
      expect({ code, stdout }).toEqual({ code: 8, stdout: "" });
      expect(testbed.deviceRequests()).toBe(before);
      expect(stderr).toContain(`error: the file ${file} can be read by others`);
      const repair = /^hint: (chmod 600 .*)$/m.exec(stderr)?.[1] ?? "";
      execFileSync("sh", ["-c", repair]);
      expect((await run(list)).code).toBe(0);
    },
  );

  it.skipIf(ON_WINDOWS)("in a file that is a link is refused", async ({ testbed, run, set }) => {
    const folder = temporaryFolder();
    writeFileSync(join(folder, "real"), testbed.sandbox.apiToken, { mode: 0o600 });
    symlinkSync(join(folder, "real"), join(folder, "link"));
    await set("api_token", `file:${join(folder, "link")}`);
    const { code, stderr } = await run(["devices", "list", "--pool", "p"]);
    expect([code, stderr]).toEqual([8, expect.stringContaining("is a symbolic link")]);
  });

  it("of a profile is not sent to another address", async ({ run }) => {
    const seen: string[] = [];
    const listener: RequestListener = (request, response) => {
      seen.push(request.headers.authorization ?? "none");
      response.end("{}");
    };
    await withService(listener, async (url) => {
      await run(["config", "set", "api_token", "-"], { stdin: TOKEN });
      const list = ["devices", "list", "--pool", "p"];
      const runs = [await run([...list, "--base-url", url]), await run(list, { env: { AGENTAUTH_BASE_URL: url } })];
      for (const { code, stderr } of runs) {
        expect(code).toBe(2);
        expect(stderr).toMatch(/the API token of profile default belongs to http:\/\/127\.0\.0\.1:\d+, not to http/);
        expect(stderr).toContain("hint: give the token for this address in AGENTAUTH_API_TOKEN");
      }
      expect(seen).toEqual([]);
      await run([...list, "--base-url", url], { env: { AGENTAUTH_API_TOKEN: "tok_for_the_other" } });
      expect(seen).toEqual(["Bearer tok_for_the_other"]);
    });
  });

  it("goes into the header that is set", async ({ run, set }) => {
    const seen: unknown[] = [];
    const listener: RequestListener = (request, response) => {
      seen.push([request.headers["x-api-key"], request.headers.authorization]);
      response.setHeader("content-type", "application/json");
      response.end('{"status":"success","summaries":[],"pagination":{}}');
    };
    await withService(listener, async (url) => {
      await set("base_url", url);
      for (const header of ["X-Api-Key", "Authorization: Token"]) {
        await set("auth_header", header);
        const { code } = await run(["devices", "list", "--pool", "p"], { env: { AGENTAUTH_API_TOKEN: TOKEN } });
        expect(code).toBe(0);
      }
      expect(seen).toEqual([
        [TOKEN, undefined],
        [undefined, `Token ${TOKEN}`],
      ]);
    });
  });
});
