import { readFileSync } from "node:fs";
import * as tls from "node:tls";
import { describe, expect, it } from "vitest";
import { createAgentClient, createManagementClient } from "../../src/profile/clients.js";
import { outletOf } from "../../src/profile/connection-settings.js";
import { Redactor } from "../../src/redact.js";
import { runCli, temporaryFolder } from "../helpers/cli.js";

const canRead = "getCACertificates" in tls;
const LIST = ["devices", "list", "--pool", "p", "--base-url", "https://127.0.0.1:9", "--retries", "0"];
const ENV = { AGENTAUTH_API_TOKEN: "tok_0123456789abcdef" };
const PEM = "test/fixtures/self-signed.pem";

const caOf = (options: { file?: string; system?: string }) =>
  outletOf(
    {
      proxy: undefined,
      caFile: options.file === undefined ? undefined : { value: options.file, source: "--ca-file" },
      systemCa: options.system === undefined ? undefined : { value: options.system, source: "--use-system-ca" },
      env: {},
    },
    new Redactor(),
  ).ca;

describe.skipIf(canRead)("with a Node that cannot read the authorities of the system", () => {
  const REFUSED = new RegExp(
    `Node ${process.versions.node.replaceAll(".", "\\.")} cannot read the certificate authorities of the system; that needs Node 22\\.15`,
  );

  it("the flag is refused before any request, with what helps", async () => {
    const { code, stderr } = await runCli([...LIST, "--use-system-ca"], { env: ENV });
    expect([code, stderr]).toEqual([2, expect.stringMatching(/^error: --use-system-ca: /)]);
    expect(stderr).toMatch(REFUSED);
    expect(stderr).toContain("NODE_EXTRA_CA_CERTS");
    expect(stderr).toContain("--ca-file <file>");
  });

  it("the setting is refused, which is named with its profile", async () => {
    const env = { ...ENV, AGENTAUTH_HOME: temporaryFolder() };
    expect(await runCli(["config", "set", "use_system_ca", "yes"], { env })).toMatchObject({ code: 0 });
    const { code, stderr } = await runCli(LIST, { env });
    expect([code, stderr]).toEqual([2, expect.stringMatching(/^error: profile default: Node /)]);
    const doctor = await runCli(["doctor", "--json"], { env });
    expect(doctor.stdout).toMatch(REFUSED);
  });

  it("the options of both clients are refused", () => {
    const refused = expect.objectContaining({ code: "usage", message: expect.stringMatching(REFUSED) });
    expect(() => createAgentClient({ useSystemCa: true })).toThrow(refused);
    expect(() => createManagementClient({ useSystemCa: true, baseUrl: "https://x.example" })).toThrow(refused);
  });
});

it.skipIf(!canRead)("adds the authorities of the system to those that Node trusts, and to those of --ca-file", () => {
  const read = (tls as unknown as { getCACertificates: (type: string) => string[] }).getCACertificates;
  const [own, system] = [read("default"), read("system")];
  expect(caOf({ system: "yes" })).toEqual([...own, ...system]);
  expect(caOf({ system: "yes", file: PEM })).toEqual([...own, ...system, readFileSync(PEM, "utf8")]);
});

it("trusts what Node trusts without the flag, and with the setting no", () => {
  expect(caOf({})).toBeUndefined();
  expect(caOf({ system: "no" })).toBeUndefined();
  expect(caOf({ system: "no", file: PEM })?.at(-1)).toBe(readFileSync(PEM, "utf8"));
});

it("does not go with a fetch or a network of the caller's own", () => {
  const message = "the option useSystemCa and the option fetch exclude each other";
  expect(() => createAgentClient({ useSystemCa: true, fetch })).toThrow(message);
  expect(() => createAgentClient({ useSystemCa: false, fetch })).not.toThrow();
});

it("config set takes yes and no alone", async () => {
  const { code, stderr } = await runCli(["config", "set", "use_system_ca", "true"]);
  expect([code, stderr]).toEqual([2, expect.stringContaining('use_system_ca "true" must be one of yes, no')]);
});
