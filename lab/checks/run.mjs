// What programs of other projects say: `openapi` of openapi.yaml; `package` of the packed package, and of the built types.
import { spawnSync } from "node:child_process";
import { dirname, join } from "node:path";
import { installPackages, modules } from "../install.mjs";

const root = dirname(dirname(import.meta.dirname));
const compiler = join(root, "node_modules", ".bin", "tsc");
const ofLab = (program) => join(modules, ".bin", program);
const STRICT = ["--noEmit", "--strict", "--exactOptionalPropertyTypes", "--skipLibCheck", "--target", "es2023"];
const CHECKS = {
  openapi: [[ofLab("redocly"), "lint", "--config", ".config/redocly.yaml", "openapi.yaml"]],
  package: [
    [compiler, ...STRICT, "--module", "nodenext", "--types", "node", "lab/checks/clients.ts"],
    [ofLab("publint"), "--strict"],
    [ofLab("attw"), "--pack", ".", "--profile", "esm-only", "--exclude-entrypoints", "openapi.yaml"],
  ],
};

const commands = CHECKS[process.argv[2]];
if (commands === undefined) {
  console.error(`usage: node lab/checks/run.mjs ${Object.keys(CHECKS).join("|")}`);
  process.exit(2);
}
if (!installPackages()) process.exit(1);
for (const [program, ...args] of commands) {
  const options = { cwd: root, stdio: "inherit", shell: process.platform === "win32" };
  const { status } = spawnSync(program, args, options);
  if (status !== 0) process.exit(status ?? 1);
}
