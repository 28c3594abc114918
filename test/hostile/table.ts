import { readdirSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { temporaryFolder } from "../helpers/folder.js";
import type { HostileCase } from "./case.js";
import { withoutPublicWorld } from "./kit/public-world.js";
import { PROCESS_CASES } from "./processes.js";
import { isForLibrary, runCase, runInLibrary } from "./run-case.js";

declare module "vitest" {
  interface TaskMeta {
    /** What `npm run hostile` prints for a case; only runs of the command line are measured. */
    hostile?: Pick<HostileCase, "id" | "input" | "result"> & {
      exit?: number | null;
      seconds?: number;
      megabytes?: number;
    };
    /** The ids of the rows, in the order of the table. */
    hostileIds?: readonly string[];
  }
}

const LIMIT_S = 120;
const options = ({ limit = LIMIT_S }: HostileCase) => ({ timeout: limit * 1000 });

/**
 * Runs the cases of a table in this process: against the command line, but for the cases of {@link hostileProcesses},
 * and against the library if they apply.
 */
export function hostile(name: string, cases: readonly HostileCase[]): void {
  workInEmptyFolder();
  const { here } = commandCases(cases);
  if (here.length > 0) {
    describe.concurrent(`${name}, command line`, () => {
      for (const one of here) testCommand(one, false);
    });
  }
  const ofLibrary = cases.filter((one) => isForLibrary(one) && one.impossible === undefined);
  if (ofLibrary.length === 0) return;
  describe.concurrent(`${name}, library`, () => {
    for (const one of ofLibrary) {
      test(titleOf(one), options(one), async ({ task, expect }) => {
        const { id, input, result } = one;
        task.meta.hostile = { id, input, result };
        const { problems, text } = await runInLibrary(one);
        expect(problems, problems.join("\n")).toEqual([]);
        if (holdsTexts(text)) expect(text.trimEnd()).toMatchSnapshot();
      });
    }
  });
}

/** Runs the first case of a table, and those that need a process, against the built program. */
export function hostileProcesses(name: string, cases: readonly HostileCase[]): void {
  const { inProcesses } = commandCases(cases);
  if (inProcesses.length === 0) return;
  describe.concurrent(`${name}, command line`, () => {
    for (const one of inProcesses) testCommand(one, true);
  });
}

function commandCases(cases: readonly HostileCase[]) {
  const ofCommand = cases.filter(({ call }) => call === undefined);
  const needsProcess = (one: HostileCase) => one === ofCommand[0] || PROCESS_CASES.has(one.id);
  return { here: ofCommand.filter((one) => !needsProcess(one)), inProcesses: ofCommand.filter(needsProcess) };
}

function testCommand(one: HostileCase, startsProcesses: boolean): void {
  test(titleOf(one), options(one), async ({ task, expect, skip }) => {
    const impossible = one.impossible ?? (one.world === "public" ? withoutPublicWorld : undefined);
    skip(impossible !== undefined, impossible);
    const { id, input, result } = one;
    task.meta.hostile = { id, input, result };
    const { problems, text, exit = null, seconds, megabytes } = await runCase(one, startsProcesses);
    task.meta.hostile = { id, input, result, exit, seconds, megabytes };
    expect(problems, problems.join("\n")).toEqual([]);
    if (!startsProcesses && holdsTexts(text)) expect(text.trimEnd()).toMatchSnapshot();
  });
}

/** Other systems have other commands in their hints. A row that a text or a hint is changed for: `npx vitest run -u`. */
const holdsTexts = (text: string) => text !== "" && process.platform === "linux";

/** A run in this process has its working folder, and must not write there either. */
function workInEmptyFolder(): void {
  const before = process.cwd();
  const folder = temporaryFolder();
  beforeAll(() => process.chdir(folder));
  afterAll(() => {
    process.chdir(before);
    expect(readdirSync(folder)).toEqual([]);
  });
}

function titleOf({ id, input, result }: HostileCase): string {
  return `${id} ${input}: ${result}`;
}
