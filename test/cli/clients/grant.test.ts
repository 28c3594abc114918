import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { readGrantInputs, readIdp } from "../../../src/cli/clients/grant.js";
import type { ContextFlags } from "../../../src/cli/runtime/context.js";
import { clientKey } from "../../helpers/client-keys.js";
import { temporaryFolder } from "../../helpers/folder.js";
import type { MemoryIoOptions } from "../../helpers/memory-io.js";
import { memoryContext } from "../commands/request/support.js";

/** A private file. */
function fileWith(text: string): string {
  const path = join(temporaryFolder(), "secret");
  writeFileSync(path, text, { mode: 0o600 });
  return path;
}

function read(flags: ContextFlags, io: MemoryIoOptions = {}) {
  const context = memoryContext(io);
  return { inputs: readGrantInputs(flags, context, false), masks: (text: string) => context.redactor.redact(text) };
}

describe("the client that flags name", () => {
  it("is none, or one with its secret from the environment, a file or standard input", async () => {
    const env = { AGENTAUTH_CLIENT_SECRET: "of-the-environment" };
    expect(await read({}, { env }).inputs).toMatchObject({ client: undefined, grant: undefined });
    expect(await read({ clientId: "c" }).inputs).toMatchObject({ client: { clientId: "c" }, grant: undefined });
    const sources: [ContextFlags, MemoryIoOptions, string][] = [
      [{}, { env }, "of-the-environment"],
      [{}, { env: { AGENTAUTH_CLIENT_SECRET: `file:${fileWith("referenced-secret\n")}` } }, "referenced-secret"],
      [{ clientSecretFile: fileWith("of-a-file\r\n") }, { env }, "of-a-file"],
      [{ clientSecretFile: "-" }, { env, stdin: "of-standard-input\n" }, "of-standard-input"],
    ];
    for (const [flags, io, clientSecret] of sources) {
      const { inputs, masks } = read({ clientId: "c", ...flags }, io);
      expect((await inputs).client).toEqual({ clientId: "c", clientSecret });
      expect(masks(`it is ${clientSecret}!`)).toBe("it is ********!");
    }
  });

  it("has a key from a file or standard input, with its own id", async () => {
    const { jwk } = await clientKey("ES256");
    const text = JSON.stringify({ ...(await jwk()), kid: "own" });
    const named = await read({ clientId: "c", privateKey: fileWith(text) }).inputs;
    expect(named.client).toMatchObject({ clientId: "c", privateKey: { algorithm: "ES256", keyId: "own" } });
    const piped = await read({ clientId: "c", privateKey: "-" }, { stdin: text }).inputs;
    expect(piped.client).toMatchObject({ clientId: "c", privateKey: { algorithm: "ES256", keyId: "own" } });
  });

  it("is refused with the source of a key that is none, and without a key that was typed", async () => {
    const path = fileWith("no key");
    await expect(read({ clientId: "c", privateKey: path }).inputs).rejects.toMatchObject({
      ...{ code: "usage", message: expect.stringContaining(`--private-key "${path}"`) },
    });
    for (const privateKey of ["-----BEGIN PRIVATE KEY-----\nabc", ' {"kty":"EC","d":"abc"}']) {
      await expect(read({ clientId: "c", privateKey }).inputs).rejects.toMatchObject({
        code: "usage",
        message:
          "--private-key: a key must not be on the command line, where other programs can read it and the shell stores it",
        hint: "--private-key <file>, or - for stdin; and revoke the one that was typed here",
      });
    }
    await expect(read({ clientId: "c", privateKey: "./x{" }).inputs).rejects.toMatchObject({ code: "store_failed" });
  });

  it("goes with its flags alone", async () => {
    await expect(read({ clientId: "" }).inputs).rejects.toMatchObject({ message: "--client-id is empty" });
  });
});

describe("the machine grant that flags name", () => {
  const ID_JAG = {
    grant: "id-jag",
    clientId: "c",
    idpTokenEndpoint: "https://idp.example/token",
    idpClientId: "i",
  } as const;
  const request = { issuer: "https://as.example", tokenEndpoint: "https://as.example/token" } as never;

  it("is the credentials of the client", async () => {
    const { grant } = await read({ grant: "client-credentials", clientId: "c" }).inputs;
    expect(grant).toEqual({ type: "client_credentials" });
  });

  it("is an assertion, read when it is needed and masked from then on", async () => {
    const { inputs, masks } = read({ grant: "jwt-bearer", assertion: `file:${fileWith(" an-assertion.of.mine \n")}` });
    const { grant } = await inputs;
    expect(grant).toMatchObject({ type: "jwt_bearer" });
    if (grant?.type !== "jwt_bearer" || typeof grant.assertion !== "function") throw new Error("another grant");
    expect(masks("an-assertion.of.mine")).toBe("an-assertion.of.mine");
    expect(await grant.assertion(request)).toBe("an-assertion.of.mine");
    expect(masks("an-assertion.of.mine")).toBe("********");
    await expect(read({ grant: "jwt-bearer", assertion: "nowhere" }).inputs).rejects.toMatchObject({
      ...{ code: "usage", message: expect.stringContaining("--assertion") },
    });
  });

  it("is an ID token of a file that is read each time, of standard input, or of the environment", async () => {
    const path = fileWith("id-token-1\n");
    const env = { AGENTAUTH_ID_TOKEN: "id-token-of-env", AGENTAUTH_IDP_CLIENT_SECRET: "idp-secret" };
    const grantOf = async (flags: ContextFlags, io: MemoryIoOptions) => {
      const { inputs, masks } = read({ ...ID_JAG, ...flags }, io);
      const { grant } = await inputs;
      if (grant?.type !== "id_jag") throw new Error("another grant");
      return { ...grant, idToken: () => grant.idToken(), masks };
    };
    const idp = { tokenEndpoint: "https://idp.example/token", clientId: "i", clientSecret: "idp-secret" };
    const ofFile = await grantOf({}, { env: { ...env, AGENTAUTH_ID_TOKEN: `file:${path}` } });
    expect([ofFile.idp, await ofFile.idToken(), ofFile.masks("id-token-1")]).toEqual([idp, "id-token-1", "********"]);
    writeFileSync(path, "id-token-2", { mode: 0o600 });
    expect(await ofFile.idToken()).toBe("id-token-2");
    const ofEnv = await grantOf({}, { env });
    expect([ofEnv.idp, await ofEnv.idToken(), ofEnv.masks("id-token-of-env")]).toEqual([
      idp,
      "id-token-of-env",
      "********",
    ]);
  });

  it("is refused without an ID token", async () => {
    await expect(read(ID_JAG).inputs).rejects.toMatchObject({
      ...{ code: "usage", message: "--grant id-jag requires the ID token of a user" },
      hint: "give it in AGENTAUTH_ID_TOKEN, or its file: AGENTAUTH_ID_TOKEN=file:<path>",
    });
  });
});

it.each([
  [{}, "stored"],
  [{ idp: true }, "stored"],
  [{ idp: "https://idp.example" }, { issuer: "https://idp.example" }],
  [
    { idp: "https://idp.example", idpClientId: "i" },
    { issuer: "https://idp.example", clientId: "i", clientSecret: "s-secret" },
  ],
] as const)("the identity provider of %j", (flags, expected) => {
  const env = { AGENTAUTH_IDP_CLIENT_SECRET: "s-secret" };
  expect(readIdp(flags, memoryContext({ env }))).toEqual(expected);
});
