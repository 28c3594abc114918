import { createServer } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { osKeychain } from "../../../src/store/keychain/keychain.js";
import { keyringStore } from "../../../src/store/keychain/keyring.js";
import { temporaryFolder } from "../../helpers/cli.js";
import { madeGrant, plainGrant } from "../../helpers/grant.js";
import { HAS_SECRET_SERVICE, type SecretService, startSecretService } from "../../helpers/secret-service.js";
import { ON_LINUX } from "../../helpers/systems.js";

const KEY = { profile: "default", server: "https://mcp.example/mcp" };

describe.skipIf(!HAS_SECRET_SERVICE)("a real Secret Service", () => {
  let service: SecretService;

  beforeAll(async () => {
    service = await startSecretService();
  });
  afterAll(() => service.close());

  const keychain = (account: string, timeout?: number) => osKeychain(account, { env: service.env, timeoutMs: timeout });

  it("keeps an entry, and each account apart", async () => {
    expect(await keychain("one").get()).toBeUndefined();
    await keychain("one").set("first");
    await keychain("two").set("second");
    await keychain("one").set("third");
    expect(await keychain("one").get()).toBe("third");
    expect(await keychain("two").get()).toBe("second");
  });

  it("has the key of a store", async () => {
    const home = temporaryFolder();
    const open = () => keyringStore(home, { keychain: keychain("store") });
    await open().save(madeGrant(), undefined);
    const grant = await open().read(KEY);
    expect(grant && plainGrant(grant)).toEqual(plainGrant(madeGrant()));
    expect(Buffer.from((await keychain("store").get()) ?? "", "base64url")).toHaveLength(32);
  });

  it("says that it is locked, for reading and for writing", async () => {
    const own = await startSecretService();
    onTestFinished(() => own.close());
    const locked = osKeychain("one", { env: own.env });
    await locked.set("first");
    await own.lock();
    const refusal = {
      code: "store_failed",
      message: expect.stringMatching(/^the keychain is locked, or access .* denied/),
    };
    await expect(locked.get()).rejects.toMatchObject(refusal);
    await expect(locked.set("second")).rejects.toMatchObject(refusal);
  });
});

describe.runIf(ON_LINUX)("the real package", () => {
  it("says that there is no bus", async () => {
    const env = { DBUS_SESSION_BUS_ADDRESS: `unix:path=${join(temporaryFolder(), "none")}` };
    await expect(osKeychain("one", { env }).get()).rejects.toMatchObject({
      code: "store_failed",
      message: expect.stringMatching(/^there is no keychain here: .*Failed to connect to socket/),
    });
  });

  it("times out on a bus that accepts calls and never answers", async () => {
    const path = join(temporaryFolder(), "bus");
    const bus = createServer((socket) => void socket.on("error", () => undefined).resume());
    await new Promise<void>((resolve) => bus.listen(path, resolve));
    onTestFinished(() => void bus.close());
    const silent = osKeychain("one", { env: { DBUS_SESSION_BUS_ADDRESS: `unix:path=${path}` }, timeoutMs: 1000 });
    await expect(silent.get()).rejects.toMatchObject({ message: "the keychain did not answer within 1 s" });
  });
});
