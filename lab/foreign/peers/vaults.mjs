// The vaults of hosted agents. They are services of their vendors, so only their types are compared.
import { spawnSync } from "node:child_process";
import { createRequire } from "node:module";
import { join } from "node:path";
import { folder, versionOf } from "../peer.mjs";

export const rows = [
  {
    name: "vaults",
    title: "types of the vaults of hosted agents",
    check() {
      const compiler = createRequire(join(folder, "../../package.json")).resolve("typescript/bin/tsc");
      const flags = ["--noEmit", "--strict", "--exactOptionalPropertyTypes", "--skipLibCheck", "--target", "es2023"];
      const words = [compiler, ...flags, "--module", "nodenext", "--types", "node", join(folder, "vaults.ts")];
      const { status, stdout } = spawnSync(process.execPath, words, { encoding: "utf8", cwd: folder });
      const versions = ["@anthropic-ai/sdk", "openai"].map((name) => `${name} ${versionOf(name)}`);
      return { passed: status === 0, version: versions.join(", "), output: stdout };
    },
  },
];
