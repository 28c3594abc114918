import { describe, expect, it } from "vitest";
import { checkMachineGrantFlags, stdinFlag } from "../../../src/cli/flags/grant.js";
import type { AgentAuthError } from "../../../src/errors.js";

type Flags = Parameters<typeof checkMachineGrantFlags>[0];
const ID_JAG = {
  grant: "id-jag",
  clientId: "c",
  idpTokenEndpoint: "https://idp.example/token",
  idpClientId: "i",
} as const satisfies Flags;

/** What a check throws. */
function failureOf(check: () => void): AgentAuthError {
  try {
    check();
  } catch (error) {
    return error as AgentAuthError;
  }
  throw new Error("nothing was thrown");
}

describe("the flags of a machine", () => {
  it.each<[string, Flags]>([
    ["none at all", {}],
    ["a client of a person's", { clientId: "c", clientSecretFile: "f" }],
    ["a client of a person's that has a key", { clientId: "c", privateKey: "k", flow: "device" }],
    ["client credentials", { grant: "client-credentials", clientId: "c", privateKey: "-" }],
    ["an assertion", { grant: "jwt-bearer", clientId: "c", assertion: "file:f", login: false }],
    ["an assertion without a client", { grant: "jwt-bearer", assertion: "gcp", assertionAudience: "a" }],
    ["a person's at an identity provider", { idp: "https://idp.example", idpClientId: "i" }],
    ["a person's, with a secret from standard input", { clientId: "c", clientSecretFile: "-" }],
    ["an identity provider", ID_JAG],
  ])("may be %s", (_what, flags) => {
    expect(() => checkMachineGrantFlags(flags)).not.toThrow();
  });

  it.each<[Flags, string, string]>([
    [{ clientId: "" }, "--client-id", "is empty"],
    [{ ...ID_JAG, idpClientId: "" }, "--idp-client-id", "is empty"],
    [{ assertion: "file:f" }, "--assertion", "--grant jwt-bearer"],
    [{ grant: "client-credentials", clientId: "c", assertion: "file:f" }, "--assertion", "--grant jwt-bearer"],
    [
      { grant: "jwt-bearer", clientId: "c", assertion: "file:f", idpClientId: "i" },
      "--idp-client-id",
      "--grant id-jag",
    ],
    [{ idpClientId: "i" }, "--idp-client-id", "--grant id-jag"],
    [{ privateKey: "k" }, "--private-key", "--client-id"],
    [{ clientId: "c", privateKey: "k", clientSecretFile: "f" }, "--private-key", "--client-secret-file"],
    [{ grant: "client-credentials" }, "--grant client-credentials", "--client-id"],
    [{ grant: "jwt-bearer", assertion: "gcp", clientSecretFile: "f" }, "--client-secret-file", "--client-id"],
    [{ grant: "jwt-bearer", assertion: "gcp", assertionAudience: "" }, "--assertion-audience", "is empty"],
    [{ grant: "jwt-bearer", clientId: "c" }, "--grant jwt-bearer", "--assertion"],
    [{ grant: "id-jag", clientId: "c", idpClientId: "i" }, "--grant id-jag", "--idp-token-endpoint"],
    [{ grant: "id-jag", clientId: "c", idpTokenEndpoint: "u" }, "--grant id-jag", "--idp-client-id"],
    [{ clientSecretFile: "-", subjectTokenFile: "-" }, "--client-secret-file -", "--subject-token-file -"],
    [{ grant: "client-credentials", clientId: "c", flow: "device" }, "--grant client-credentials", "--flow"],
    [{ grant: "client-credentials", clientId: "c", login: true }, "--grant client-credentials", "--login"],
    [{ grant: "client-credentials", clientId: "c", accountHint: "a" }, "--grant client-credentials", "--account-hint"],
    [{ clientId: "c", issuer: "" }, "--issuer", "is empty"],
    [{ idp: true, idpTokenEndpoint: "u" }, "--idp-token-endpoint", "--grant id-jag"],
    [{ clientId: "c", privateKey: "-", subjectTokenFile: "-" }, "--private-key -", "--subject-token-file -"],
    [{ ...ID_JAG, redirectHost: "localhost" }, "--grant id-jag", "--redirect-host"],
    [{ ...ID_JAG, redirectPort: 1 }, "--grant id-jag", "--redirect-port"],
    [{ ...ID_JAG, loginTimeout: 1 }, "--grant id-jag", "--login-timeout"],
    [{ grant: "client-credentials", clientId: "c", clientMetadataUrl: "u" }, "--grant", "--client-metadata-url"],
  ])("%j: both flags are named", (flags, one, other) => {
    const { code, message, hint } = failureOf(() => checkMachineGrantFlags(flags));
    expect([code, message]).toEqual(["usage", expect.stringContaining(one)]);
    expect(message).toContain(other);
    expect([message, hint]).toMatchSnapshot();
  });

  it("say which of them reads standard input", () => {
    expect(stdinFlag({ privateKey: "-" })).toBe("--private-key");
    expect(stdinFlag({ subjectTokenFile: "-" })).toBe("--subject-token-file");
    expect(stdinFlag({ privateKey: "key.pem" })).toBeUndefined();
  });
});
