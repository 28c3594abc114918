import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { beforeAll, expect, it } from "vitest";
import type { Keychain } from "../../../src/store/keychain/keychain.js";
import { keyringStore } from "../../../src/store/keychain/keyring.js";
import { collect, temporaryFolder } from "../../helpers/cli.js";
import { madeGrant } from "../../helpers/grant.js";

const root = fileURLToPath(new URL("../../..", import.meta.url));

/**
 * Saves one grant in a process of its own, with a keychain that is a file and takes its time: between a look that finds
 * nothing and the writing, every other process has looked too. Each writing is noted in a line.
 */
const PROGRAM = `
import { appendFileSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { keyringStore } from "./src/store/keychain/keyring.js";
import { madeGrant } from "./test/helpers/grant.js";

const [home, keychain, profile] = process.argv.slice(2);
const store = keyringStore(home, {
  keychain: {
    async get() {
      const value = existsSync(keychain) ? readFileSync(keychain, "utf8") : undefined;
      await sleep(100);
      return value;
    },
    async set(value) {
      appendFileSync(keychain + ".log", profile + "\\n");
      await sleep(100);
      writeFileSync(keychain, value);
    },
  },
});
process.stdout.write("ready\\n");
await new Promise((resolve) => process.stdin.once("data", resolve));
await store.save(madeGrant({ profile }), undefined);
process.exit(0);
`;

let program: string;

beforeAll(async () => {
  program = join(temporaryFolder(), "save.mjs");
  await build({
    stdin: { contents: PROGRAM, resolveDir: root, loader: "ts" },
    outfile: program,
    bundle: true,
    platform: "node",
    format: "esm",
    logLevel: "warning",
  });
});

it("processes that need a key at once, where there is none make one, and open what each of them has sealed", async () => {
  const home = temporaryFolder();
  const keychain = join(temporaryFolder(), "keychain");
  const profiles = ["a", "b", "c", "d"];
  const children = profiles.map((profile) => {
    const child = spawn(process.execPath, [program, home, keychain, profile], { stdio: "pipe" });
    return { child, said: collect(child.stderr), ended: once(child, "exit") };
  });
  await Promise.all(children.map(({ child }) => once(child.stdout, "data")));
  for (const { child } of children) child.stdin.write("go\n");
  const codes = await Promise.all(children.map(async ({ ended }) => (await ended)[0] as number | null));
  expect(codes, children.map(({ said }) => said()).join("")).toEqual([0, 0, 0, 0]);

  expect(readFileSync(`${keychain}.log`, "utf8")).toMatch(/^[abcd]\n$/);
  const inAFile: Keychain = {
    get: async () => readFileSync(keychain, "utf8"),
    set: () => Promise.reject(new Error("there is a key already")),
  };
  const store = keyringStore(home, { keychain: inAFile });
  for (const profile of profiles) {
    const { server } = madeGrant();
    expect((await store.read({ profile, server }))?.tokens.accessToken.reveal(), profile).toBe("access-token-1");
  }
});
