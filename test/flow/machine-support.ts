import type { SandboxMachine, SandboxOptions } from "../../src/sandbox/index.js";
import { plant } from "../helpers/canaries.js";
import { flowTest, type User } from "./support.js";

/** The flags that use the clients of a sandbox with machine grants. */
function flagsOf(machine: SandboxMachine) {
  const client = (grant: string, clientId: string, ...more: string[]) => {
    return ["--grant", grant, "--client-id", clientId, "--issuer", machine.issuer, ...more];
  };
  const { secretClient, workloadClient, idp } = machine;
  return {
    client,
    service: (...more: string[]) => client("client-credentials", secretClient.clientId, ...more),
    workload: (path: string, ...more: string[]) =>
      client("jwt-bearer", workloadClient.clientId, "--assertion", `file:${path}`, ...more),
    user: (...more: string[]) => {
      const flags = ["--idp-token-endpoint", idp.tokenEndpoint, "--idp-client-id", idp.clientId];
      return client("id-jag", secretClient.clientId, ...flags, ...more);
    },
  };
}

/** The fixtures that {@link machineTest} adds. */
export interface MachineFixtures {
  machine: SandboxMachine;
  as: ReturnType<typeof flagsOf>;
}

/** {@link flowTest} at a sandbox with machine grants: its clients, the flags and the environment that use them. */
export const machineTest = (options: SandboxOptions = {}) =>
  flowTest({ machineGrants: true, ...options })
    .extend("machine", { scope: "file" }, ({ desk }) => {
      const { machine } = desk.sandbox;
      if (!machine) throw new Error("the sandbox has no machine grants");
      for (const { clientSecret } of [machine.secretClient, machine.idp]) plant("client_secret", clientSecret);
      return machine;
    })
    .extend("as", { scope: "file" }, ({ machine }) => flagsOf(machine))
    .extend("secretEnv", { scope: "file" }, ({ machine }) => {
      return { AGENTAUTH_CLIENT_SECRET: machine.secretClient.clientSecret };
    });

/** The requests of a user to token endpoints. */
export const tokenRequests = (me: User) => me.requests().filter((line) => line.includes("/token "));
