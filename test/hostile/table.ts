import { describe, test } from "vitest";
import type { HostileCase } from "./case.js";
import { withoutPublicWorld } from "./kit/public-world.js";
import { isForLibrary, runCase, runInLibrary } from "./run-case.js";

declare module "vitest" {
  interface TaskMeta {
    /** What `npm run hostile` prints for a case; only runs of the command line are measured. */
    hostile?: Pick<HostileCase, "id" | "input" | "result"> & {
      exit?: number | null;
      seconds?: number;
      megabytes?: number;
    };
  }
}

const LIMIT_S = 120;
const options = ({ limit = LIMIT_S }: HostileCase) => ({ timeout: limit * 1000 });

/** Runs every case of a table against the built command line, and against the library if it applies. */
export function hostile(name: string, cases: readonly HostileCase[]): void {
  const ofCommand = cases.filter(({ call }) => call === undefined);
  describe.concurrent(`${name}, command line`, () => {
    for (const one of ofCommand) {
      test(titleOf(one), options(one), async ({ task, expect, skip }) => {
        const impossible = one.impossible ?? (one.world === "public" ? withoutPublicWorld : undefined);
        skip(impossible !== undefined, impossible);
        const { id, input, result } = one;
        task.meta.hostile = { id, input, result };
        const { problems, exit = null, seconds, megabytes } = await runCase(one);
        task.meta.hostile = { id, input, result, exit, seconds, megabytes };
        expect(problems, problems.join("\n")).toEqual([]);
      });
    }
  });
  const ofLibrary = cases.filter((one) => isForLibrary(one) && one.impossible === undefined);
  if (ofLibrary.length === 0) return;
  describe.concurrent(`${name}, library`, () => {
    for (const one of ofLibrary) {
      test(titleOf(one), options(one), async ({ task, expect }) => {
        const { id, input, result } = one;
        task.meta.hostile = { id, input, result };
        const problems = await runInLibrary(one);
        expect(problems, problems.join("\n")).toEqual([]);
      });
    }
  });
}

function titleOf({ id, input, result }: HostileCase): string {
  return `${id} ${input}: ${result}`;
}
