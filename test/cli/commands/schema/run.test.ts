import { describe, expect, it } from "vitest";
import { OUTPUT_TYPES } from "../../../../src/cli/output/output-types.js";
import { linesOf, runCli } from "../../../helpers/cli.js";

describe("schema", () => {
  it("lists every type with version, id and description", async () => {
    const { code, stdout, stderr } = await runCli(["schema"]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(linesOf(stdout).map((line) => line.split("\t"))).toEqual(
      Object.entries(OUTPUT_TYPES).map(([name, { version, description }]) => [
        name,
        String(version),
        `urn:agentauth:schema:${name}:${version}`,
        description,
      ]),
    );
  });

  it("lists them on a terminal without the id, below a header", async () => {
    const { stdout } = await runCli(["schema"], { env: { NO_COLOR: "1" }, tty: true, columns: 200 });
    const [header = "", ...rows] = linesOf(stdout);
    expect(header).toMatch(/^TYPE +VERSION +DESCRIPTION$/);
    expect(rows.map((row) => row.split(" ")[0])).toEqual(Object.keys(OUTPUT_TYPES));
    expect(stdout).not.toContain("urn:");
  });

  it.each(Object.keys(OUTPUT_TYPES))("prints the schema of %s", async (name) => {
    const { code, stdout, stderr } = await runCli(["schema", name]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(JSON.parse(stdout)).toMatchObject({
      $schema: "https://json-schema.org/draft/2020-12/schema",
      $id: expect.stringMatching(new RegExp(`^urn:agentauth:schema:${name}:\\d+$`)),
      title: expect.any(String),
    });
  });

  it.each([
    ["devise", "did you mean device?"],
    ["zzzzzzzz", `types: ${Object.keys(OUTPUT_TYPES).join(", ")}`],
    ["__proto__", `types: ${Object.keys(OUTPUT_TYPES).join(", ")}`],
  ])("refuses the unknown type %s", async (name, hint) => {
    expect(await runCli(["schema", name])).toMatchObject({
      code: 2,
      stdout: "",
      stderr: `error: there is no output type "${name}"\nhint: ${hint}\n`,
    });
  });
});
