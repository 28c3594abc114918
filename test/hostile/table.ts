import { readdirSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { temporaryFolder } from "../helpers/folder.js";
import type { HostileCase } from "./case.js";
import { withoutPublicWorld } from "./kit/public-world.js";
import { PROCESS_CASES } from "./processes.js";
import { isForLibrary, runCase, runInLibrary } from "./run-case.js";

declare module "vitest" {
  interface TaskMeta {
    /** What `npm run hostile` prints of a case; what was measured is of the command line alone. */
    hostile?: Pick<HostileCase, "id" | "came" | "done"> & {
      exit?: number | null;
      seconds?: number;
      megabytes?: number;
    };
  }
}

const LIMIT_S = 120;
const options = ({ limit = LIMIT_S }: HostileCase) => ({ timeout: limit * 1000 });

/**
 * Puts every case of a table to the command line, and to the library where that can be. The first case runs the built
 * program, in a process of its own.
 */
export function hostile(name: string, cases: readonly HostileCase[]): void {
  const ofCommand = cases.filter(({ call }) => call === undefined);
  workInEmptyFolder();
  describe.concurrent(`${name}, command line`, () => {
    for (const one of ofCommand) {
      test(titleOf(one), options(one), async ({ task, expect, skip }) => {
        const impossible = one.impossible ?? (one.world === "public" ? withoutPublicWorld : undefined);
        skip(impossible !== undefined, impossible);
        const { id, came, done } = one;
        task.meta.hostile = { id, came, done };
        const {
          problems,
          exit = null,
          seconds,
          megabytes,
        } = await runCase(one, one === ofCommand[0] || PROCESS_CASES.has(id));
        task.meta.hostile = { id, came, done, exit, seconds, megabytes };
        expect(problems, problems.join("\n")).toEqual([]);
      });
    }
  });
  const ofLibrary = cases.filter((one) => isForLibrary(one) && one.impossible === undefined);
  if (ofLibrary.length === 0) return;
  describe.concurrent(`${name}, library`, () => {
    for (const one of ofLibrary) {
      test(titleOf(one), options(one), async ({ task, expect }) => {
        const { id, came, done } = one;
        task.meta.hostile = { id, came, done };
        const problems = await runInLibrary(one);
        expect(problems, problems.join("\n")).toEqual([]);
      });
    }
  });
}

/** A run in this process works in the folder of this process, where it must not write either. */
function workInEmptyFolder(): void {
  const before = process.cwd();
  const folder = temporaryFolder();
  beforeAll(() => process.chdir(folder));
  afterAll(() => {
    process.chdir(before);
    expect(readdirSync(folder)).toEqual([]);
  });
}

function titleOf({ id, came, done }: HostileCase): string {
  return `${id} ${came}: ${done}`;
}
