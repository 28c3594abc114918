import { expect, it } from "vitest";
import { startCliSandbox } from "../helpers/cli.js";
import { schemaChecks } from "./schema-checks.js";

it("sandbox, that runs and that does not, and what it has for machines", async () => {
  const problems = await schemaChecks();
  const sandbox = await startCliSandbox(["--machine-grants"]);
  try {
    expect(problems("sandbox", sandbox.ready)).toBeUndefined();
    expect(problems("machine", JSON.parse((await sandbox.run(["sandbox", "machine"])).stdout))).toBeUndefined();
    expect(
      problems("sandbox", JSON.parse((await sandbox.run(["sandbox", "status", "--json"])).stdout)),
    ).toBeUndefined();
  } finally {
    await sandbox.stop();
  }
  const { code, stdout } = await sandbox.run(["sandbox", "status", "--json"]);
  expect([code, problems("sandbox", JSON.parse(stdout))]).toEqual([5, undefined]);
});
