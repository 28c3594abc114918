import { once } from "node:events";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect } from "vitest";
import { until } from "../helpers/cli.js";
import { callbackOf, flowTest, loginUrl } from "./support.js";

const it = flowTest();

const WAYS: readonly (readonly [string, readonly string[], Record<string, string>])[] = [
  ["--no-input", ["--no-input"], {}],
  ["AGENTAUTH_NO_INPUT", [], { AGENTAUTH_NO_INPUT: "1" }],
];

describe.each(WAYS)("agentauth login with %s", (_name, flags, env) => {
  it.for(["--browser", "BROWSER"])(
    "starts no browser that %s names, and waits for the user",
    async (named, { me, url }) => {
      const mark = join(me.home, "opened");
      const browser = `touch "${mark}"`;
      const more = named === "BROWSER" ? { ...env, BROWSER: browser } : env;
      const words = named === "BROWSER" ? flags : [...flags, "--browser", browser];
      const { child, err } = me.start(["login", url, ...words], more);
      const ended = once(child, "close");
      await until(() => loginUrl(err()) !== undefined);
      await fetch(await callbackOf(loginUrl(err()) ?? ""));
      expect(await ended).toEqual([0, null]);
      expect(existsSync(mark)).toBe(false);
      expect(await me.grants()).toHaveLength(1);
    },
  );

  it("reads no line from standard input", async ({ me, url }) => {
    const args = ["login", url, "--flow", "paste", ...flags];
    const { code, stdout, stderr } = await me.run(args, { env, stdin: "nonsense\n" });
    expect([code, stdout]).toEqual([4, ""]);
    expect(stderr).toContain("there is no terminal to paste the redirect address into");
  });
});

describe("agentauth token", () => {
  it.for(["token", "exec", "request"])("refuses --login and --no-login at once: %s", async (name, { me, url }) => {
    const rest = name === "exec" ? ["--", "true"] : [];
    for (const both of [
      ["--login", "--no-login"],
      ["--no-login", "--login"],
    ]) {
      const { code, stdout, stderr } = await me.run([name, url, ...both, ...rest]);
      expect([code, stdout]).toEqual([2, ""]);
      expect(stderr).toContain("--login and --no-login do not go together");
    }
    expect(me.requests()).toEqual([]);
  });
});
