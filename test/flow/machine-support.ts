import { Secret } from "../../src/redact.js";
import type { SandboxMachine, SandboxOptions } from "../../src/sandbox/index.js";
import { fileStore } from "../../src/store/file/file.js";
import { plant } from "../helpers/canaries.js";
import { FETCH_BROWSER, flowTest, type User } from "./support.js";

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
    .extend("machine", { scope: "file" }, ({ harness }) => {
      const { machine } = harness.sandbox;
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

/** `agentauth login --idp`, by a user who logs in at once. */
export function loginAtIdp({ idp }: SandboxMachine, ...flags: string[]): string[] {
  const named = ["--idp", idp.issuer, "--idp-client-id", idp.nativeClient.clientId];
  return ["login", ...named, "--browser", FETCH_BROWSER, ...flags];
}

/** Puts an expired id token in place of the one of the login, signed by the same provider. */
export async function expireIdToken(me: User, machine: SandboxMachine): Promise<void> {
  const store = fileStore(me.home);
  const grant = (await store.list()).find(({ account }) => account === "grant:idp");
  if (!grant) throw new Error("a login at the provider was expected");
  const { clientId: audience } = machine.idp.nativeClient;
  const idToken = new Secret(machine.idp.idToken({ audience, ttlSeconds: -60 }));
  const tokens = { ...grant.tokens, idToken };
  await store.save({ ...grant, tokens, generation: grant.generation + 1 }, grant.generation);
}
