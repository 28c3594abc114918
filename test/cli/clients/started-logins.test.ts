import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { storeCallback, storeLogin } from "../../../src/cli/clients/started-logins.js";
import type { StartedLogin } from "../../../src/oauth/login/login-codec.js";
import { temporaryFolder } from "../../helpers/cli.js";

const ID = "abcdefghijkl";

function arrange(...names: string[]) {
  const home = temporaryFolder();
  const folder = join(home, "logins");
  mkdirSync(folder, { mode: 0o700 });
  for (const name of names) writeFileSync(join(folder, name), "{}", { mode: 0o600 });
  return { files: { home: () => home, now: () => Date.now() }, names: () => readdirSync(folder).sort() };
}

describe("the files of started logins", () => {
  it("have no callback of a login that was removed while it was stored", () => {
    const removed = arrange();
    storeCallback(ID, new URLSearchParams("code=c&state=s"), removed.files);
    expect(removed.names()).toEqual([]);
    const pending = arrange(`${ID}.json`);
    storeCallback(ID, new URLSearchParams("code=c&state=s"), pending.files);
    expect(pending.names()).toEqual([`${ID}.callback`, `${ID}.json`]);
  });

  it("lose callbacks and listeners without a login when the next one starts, and nothing else", async () => {
    const kept = ["bbbbbbbbbbbb.callback", "bbbbbbbbbbbb.json", "bbbbbbbbbbbb.listener", "notes.txt"];
    const { files, names } = arrange(`${ID}.callback`, "aaaaaaaaaaaa.listener", ...kept);
    await storeLogin("cccccccccccc", { profile: "default" } as StartedLogin, files);
    expect(names()).toEqual([...kept, "cccccccccccc.json"].sort());
  });
});
