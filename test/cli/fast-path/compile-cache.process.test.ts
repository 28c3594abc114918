import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import module from "node:module";
import { join } from "node:path";
import { expect, it } from "vitest";
import { runProcess, temporaryFolder } from "../../helpers/cli.js";

function filesBelow(folder: string): string[] {
  const all = readdirSync(folder, { recursive: true, encoding: "utf8" }).map((name) => join(folder, name));
  return all.filter((path) => statSync(path).isFile());
}

it("lies in the user's caches where Node has such a cache, and damage to it changes nothing", async () => {
  const home = temporaryFolder();
  const caches = join(home, "caches");
  const env = { HOME: home, XDG_CACHE_HOME: caches, AGENTAUTH_HOME: join(home, "settings") };
  const run = () => runProcess(["schema", "device"], { env });
  const first = await run();
  expect(first).toMatchObject({ code: 0, stderr: "" });
  expect(readdirSync(home)).toEqual("enableCompileCache" in module ? ["caches"] : []);
  const files = existsSync(caches) ? filesBelow(caches) : [];
  for (const path of files) {
    const content = readFileSync(path);
    for (let at = 7; at < content.length; at += 61) content[at] = (content[at] ?? 0) ^ 1;
    writeFileSync(path, content);
  }
  expect(await run()).toEqual(first);
});

it("is neither read from the settings folder nor removed there", async () => {
  const [home, other] = [temporaryFolder(), temporaryFolder()];
  mkdirSync(join(other, "0.0.0"));
  symlinkSync(other, join(home, "compiled"));
  await runProcess(["schema", "device"], { env: { AGENTAUTH_HOME: home } });
  expect([readdirSync(home), readdirSync(other)]).toEqual([["compiled"], ["0.0.0"]]);
});
