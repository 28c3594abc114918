import type { CommanderError } from "commander";
import { describe, expect, it } from "vitest";
import { COMMANDS } from "../../../src/cli/commands/all.gen.js";
import { buildProgram } from "../../../src/cli/program.js";
import { usageErrorOf } from "../../../src/cli/runtime/usage-error.js";
import { startRun } from "../run-support.js";

/** What is reported of a command line that cannot be parsed. */
async function reported(line: string): Promise<{ message: string; hint: string | undefined }> {
  const { context } = startRun();
  const { run } = buildProgram(context, { text: "", error: "" }, { commands: COMMANDS });
  const thrown = await run(line.split(" ")).then(
    () => undefined,
    (error: CommanderError) => error,
  );
  if (thrown === undefined) throw new Error(`the parser accepts ${line}`);
  const { message, hint } = usageErrorOf(thrown);
  return { message, hint };
}

it("names the way to an id that begins with a dash, and not for a mistyped flag", async () => {
  const see = "see agentauth devices get --help";
  expect(await reported("devices get -x1")).toEqual({
    message: "unknown option '-x1'",
    hint: `${see}; an argument that begins with - comes after --`,
  });
  expect((await reported("devices get --zzzzzz")).hint).toBe(see);
});

describe("an unexpected argument", () => {
  it.each([
    ["devices list extra", "did you mean --pool extra?"],
    ["pools list extra", "did you mean --domain extra?"],
    ["domains list extra", "did you mean --account extra?"],
    ["tree extra", "did you mean --account extra?"],
    ["devices list --pool p extra", "see agentauth devices list --help"],
    ["devices get d extra", "see agentauth devices get --help"],
    ["devices get d --pool p extra", "see agentauth devices get --help"],
    ["profile list extra", "see agentauth profile list --help"],
  ])("in %s: %s", async (line, hint) => {
    expect(await reported(line)).toEqual({ message: 'unexpected argument "extra"', hint });
  });

  it("is quoted in the suggestion for a shell", async () => {
    expect((await reported("devices list a;b")).hint).toBe("did you mean --pool 'a;b'?");
  });
});
