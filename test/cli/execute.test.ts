import { EventEmitter } from "node:events";
import { PassThrough } from "node:stream";
import { describe, expect, it } from "vitest";
import { run } from "../../src/cli/execute.js";
import { PipeClosed } from "../../src/cli/io/io.js";
import { isCi } from "../../src/cli/runtime/agent-mode.js";
import type { CommandContext, Host } from "../../src/cli/runtime/context.js";
import type { CommandDeclaration } from "../../src/cli/runtime/declaration.js";
import { AgentAuthError } from "../../src/errors.js";
import { temporaryFolder } from "../helpers/cli.js";

/** Runs a command line of a program whose one command does what is given. */
async function runWork(
  words: readonly string[],
  work: (context: CommandContext) => Promise<number | undefined>,
  env: Record<string, string> = {},
) {
  const [stdin, stdout, stderr] = [new PassThrough().end(), new PassThrough(), new PassThrough()];
  const host = Object.assign(new EventEmitter(), {
    ...{ stdin, stdout, stderr, env: { AGENTAUTH_HOME: temporaryFolder(), ...env } },
    exit: () => {
      throw new Error("the process was ended");
    },
  });
  const command: CommandDeclaration = {
    ...{ group: "Help:", order: 1, names: ["work"] },
    declare: ({ root, action }) => {
      const declared = root.command("work").argument("[words...]").option("--json").option("--jq <filter>");
      declared.option("-o, --output <format>").option("--format <format>");
      declared.action(action((_options, context) => work(context)));
    },
  };
  const code = await run(["work", ...words], host as unknown as Host, [command]);
  const textOf = (stream: PassThrough) => String(stream.read() ?? "");
  return { code, stdout: textOf(stdout), stderr: textOf(stderr), env: host.env as Record<string, string> };
}

describe("a command line", () => {
  it("ends with the code of its command, after all that the command left for the end", async () => {
    const done: string[] = [];
    const { code } = await runWork([], async ({ onExit }) => {
      for (const name of ["one", "two"]) {
        onExit?.(async () => {
          await new Promise((resolve) => setTimeout(resolve, 1));
          done.push(name);
        });
      }
      done.push("ran");
      return 7;
    });
    expect([code, done]).toEqual([7, ["ran", "one", "two"]]);
  });

  it("does what was left for the end also where the command fails", async () => {
    const done: string[] = [];
    const { code } = await runWork([], async ({ onExit }) => {
      onExit?.(async () => void done.push("end"));
      throw new AgentAuthError("usage", "no", { class: "usage" });
    });
    expect([code, done]).toEqual([2, ["end"]]);
  });

  it("takes secrets out of its environment, and masks them, but not what refers to one", async () => {
    const given = { AGENTAUTH_API_TOKEN: "secret-of-env", AGENTAUTH_CLIENT_SECRET: "env:ELSEWHERE" };
    const work = async ({ io, redactor }: CommandContext) => {
      await io.stdout.write(redactor.redact("secret-of-env env:ELSEWHERE"));
      return 0;
    };
    const { stdout, env } = await runWork([], work, given);
    expect(stdout).toBe("******** env:ELSEWHERE");
    expect(Object.keys(env)).toEqual(["AGENTAUTH_HOME"]);
  });

  it.each([
    ...["AGENTAUTH_API_TOKEN", "AGENTAUTH_CLIENT_SECRET", "AGENTAUTH_ID_TOKEN", "AGENTAUTH_IDP_CLIENT_SECRET"],
    ...["AGENTAUTH_STORE_KEYS", "AGENTAUTH_STORE_URL", "AGENTAUTH_SUBJECT_TOKEN"],
  ])("masks the value of %s, and leaves it to no program that it starts", async (name) => {
    const work = async ({ io, redactor }: CommandContext) => {
      await io.stdout.write(`${redactor.redact("it is the-secret-value")} ${io.env[name]}`);
      return 0;
    };
    const { stdout, env } = await runWork([], work, { [name]: "the-secret-value" });
    expect([stdout, Object.keys(env)]).toEqual(["it is ******** the-secret-value", ["AGENTAUTH_HOME"]]);
  });

  it.each([
    ["true", true],
    ["1", true],
    ["yes", true],
    ["", false],
    ["0", false],
    ["False", false],
    ["NO", false],
    ["off", false],
    ["offline", true],
    ["10", true],
  ])("a CI job is one with CI=%j: %s", (ci, expected) => {
    expect([isCi({ CI: ci }), isCi({})]).toEqual([expected, false]);
  });

  it("logs by its flags and by AGENTAUTH_LOG, and is quiet where it is to be", async () => {
    const work = async ({ io }: CommandContext) => {
      io.say("said");
      io.verbose("step");
      io.warn("careful");
      return 0;
    };
    const [said, step, warned] = ["said\n", "step\n", "warning: careful\n"];
    const runs: [string[], Record<string, string>, string][] = [
      [[], {}, `${said}${warned}`],
      [["-v"], {}, `${said}${step}${warned}`],
      [["--verbose"], {}, `${said}${step}${warned}`],
      [["--debug"], {}, `${said}${step}${warned}`],
      [[], { AGENTAUTH_LOG: "info" }, `${said}${step}${warned}`],
      [[], { AGENTAUTH_LOG: "debug" }, `${said}${step}${warned}`],
      [["-q"], {}, warned],
      [["--quiet"], {}, warned],
      [["--", "-q", "-v"], {}, `${said}${warned}`],
      [[], { FORCE_COLOR: "1" }, `${said}\u001b[33mwarning: \u001b[39mcareful\n`],
      [["--no-color"], { FORCE_COLOR: "1" }, `${said}${warned}`],
    ];
    for (const [words, env, stderr] of runs)
      expect([words, await runWork(words, work, env)]).toMatchObject([words, { stderr }]);
  });

  it("has its stack with --debug alone, and a bug of ours is reported as one", async () => {
    const work = async () => {
      throw new TypeError("x is no function");
    };
    const plain = await runWork([], work);
    expect([plain.code, plain.stderr]).toEqual([
      1,
      "error: a bug in agentauth: TypeError: x is no function\nhint: run the command again with --debug to see where it happened\n",
    ]);
    expect((await runWork(["--debug"], work)).stderr).toContain("    at ");
  });

  it("ends with 0 where its reader has closed the pipe", async () => {
    const closed = await runWork([], async () => {
      throw new PipeClosed("gone");
    });
    expect([closed.code, closed.stdout, closed.stderr]).toEqual([0, "", ""]);
  });

  it("prints the help that is asked for, and that of a group without a command", async () => {
    const work = async () => 0;
    const asked = await runWork(["--help"], work);
    expect([asked.code, asked.stdout.split("\n")[0], asked.stderr]).toEqual([
      0,
      expect.stringMatching(/^Usage: agentauth work/),
      "",
    ]);
    const version = await runWork(["--version"], work);
    expect([version.code, version.stdout, version.stderr]).toEqual([
      0,
      expect.stringMatching(/^\d+\.\d+\.\d+\S*\n$/),
      "",
    ]);
    const wrong = await runWork(["--what"], work);
    expect([wrong.code, wrong.stdout, wrong.stderr]).toEqual([
      2,
      "",
      "error: unknown option '--what'\nhint: see agentauth work --help\n",
    ]);
  });

  it("masks words that are secrets by mistake", async () => {
    const token = `sandbox_${"a1".repeat(16)}`;
    const work = async ({ io, redactor }: CommandContext) => {
      await io.stdout.write(redactor.redact(`${token} hunter2-hunter2`));
      return 0;
    };
    expect((await runWork([token], work)).stdout).toBe("******** hunter2-hunter2");
  });

  const failing = async () => {
    throw new AgentAuthError("usage", "wrong", { class: "usage", hint: "do this" });
  };

  it.each<[string[], Record<string, string>, "text" | "JSON"]>([
    [[], {}, "text"],
    [["--json"], {}, "JSON"],
    [["-o", "json"], {}, "JSON"],
    [["-ojson"], {}, "JSON"],
    [["-o=json"], {}, "JSON"],
    [["-o", "ndjson"], {}, "JSON"],
    [["-qvo", "json"], {}, "JSON"],
    [["--output", "json"], {}, "JSON"],
    [["--output=json"], {}, "JSON"],
    [["--format", "json"], {}, "JSON"],
    [["--format=ndjson"], {}, "JSON"],
    [["-o", "csv"], {}, "text"],
    [["-o", "jsonx"], {}, "text"],
    [["json"], {}, "text"],
    [["--", "--json"], {}, "text"],
    [["--jq", "json"], {}, "text"],
    [[], { AGENTAUTH_ERRORS: "json" }, "JSON"],
    [[], { AGENTAUTH_ERRORS: "text" }, "text"],
    [[], { AGENTAUTH_AGENT: "1" }, "JSON"],
    [["-o", "csv"], { AGENTAUTH_AGENT: "1" }, "text"],
    [["--jq", "."], { AGENTAUTH_AGENT: "1" }, "text"],
  ])("%j with %j prints its error as %s", async (words, env, form) => {
    const { code, stdout, stderr } = await runWork(words, failing, env);
    expect([code, stdout]).toEqual([2, ""]);
    const last = stderr.trimEnd().split("\n").at(-1) ?? "";
    expect(last.startsWith("{") ? "JSON" : "text").toBe(form);
    if (form === "text") expect(stderr.endsWith("error: wrong\nhint: do this\n")).toBe(true);
    else expect(JSON.parse(last).error).toMatchObject({ message: "wrong", hint: "do this", exit_code: 2 });
  });
});
