import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type HostileCase, unless } from "../case.js";
import type { Kit } from "../kit/kit.js";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
const read = (path: string) => readFileSync(join(ROOT, path), "utf8");
const WORKFLOWS = readdirSync(join(ROOT, ".github/workflows")).map((name) => read(`.github/workflows/${name}`));
/** Of all that is installed to build, check and measure this package. */
const LOCKS = execFileSync("git", ["ls-files", "*package-lock.json"], { cwd: ROOT, encoding: "utf8" })
  .trim()
  .split("\n");

interface Bill {
  serialNumber: string;
  components: Component[];
  dependencies: { ref: string; dependsOn: string[] }[];
}

interface BuildScript {
  billOfMaterials(lock: unknown, own: unknown, bundled: readonly string[], licenses: Map<string, string>): Bill;
}

interface Component {
  purl: string;
  scope: string;
  hashes: { alg: string; content: string }[];
}

function supplyCase(
  id: string,
  input: string,
  result: string,
  check: (kit: Kit) => Readonly<Record<string, boolean>> | Promise<Readonly<Record<string, boolean>>>,
): HostileCase {
  return {
    id,
    input: `supply chain: ${input}`,
    result,
    outcome: "ok",
    async call(kit) {
      const problems = unless(await check(kit));
      if (problems.length > 0) throw new Error(problems.join("\n"));
    },
  };
}

/** What is built and published with the work of others. */
export const supplyChain: readonly HostileCase[] = [
  supplyCase("X5a", "an action whose tag is moved to other code", "not run: each is named by its commit", () => {
    const used = WORKFLOWS.flatMap((text) =>
      [...text.matchAll(/^\s*(?:- )?uses: (.*)$/gm)].map(([, action = ""]) => action),
    );
    const moving = used.filter((action) => !/^[\w.-]+\/[\w./-]+@[\da-f]{40} # v\d+\.\d+\.\d+$/.test(action));
    return { some: used.length > 10, [`by commit: ${moving}`]: moving.length === 0 };
  }),
  supplyCase(
    "X5b",
    "a new npm that is hostile",
    "not installed where the package is published: one version is named",
    () => {
      const installed = [...WORKFLOWS.join("\n").matchAll(/npm install .*\bnpm@(\S+)/g)].map(
        ([, version = ""]) => version,
      );
      return {
        [`pinned: ${installed}`]: installed.length > 0 && installed.every((one) => /^\d+\.\d+\.\d+$/.test(one)),
      };
    },
  ),
  supplyCase(
    "X5c",
    "a binary for another machine whose checksum the lock file lacks",
    "the check of the lock file fails",
    (kit) => {
      const folder = join(kit.folder, "work", "lock");
      const path = "node_modules/@biomejs/cli-win32-arm64";
      const entry = { version: "2.6.8", dev: true, optional: true, cpu: ["arm64"], os: ["win32"] };
      mkdirSync(folder, { recursive: true });
      writeFileSync(join(folder, "package.json"), "{}");
      const checkLock = (lock: unknown) => {
        writeFileSync(join(folder, "package-lock.json"), JSON.stringify(lock));
        const script = join(ROOT, "scripts/check-lock.mjs");
        return spawnSync(process.execPath, [script, join(folder, "package-lock.json")], { encoding: "utf8" });
      };
      const { status, stderr } = checkLock({ lockfileVersion: 3, packages: { "": {}, [path]: entry } });
      const without = LOCKS.flatMap((lock) => {
        const { packages } = JSON.parse(read(lock)) as { packages: Record<string, { integrity?: string }> };
        return Object.keys(packages).filter((name) => name !== "" && packages[name]?.integrity === undefined);
      });
      return {
        refused: status === 1 && stderr.includes("has no integrity"),
        some: LOCKS.length > 4,
        [`ours: ${without}`]: without.length === 0,
      };
    },
  ),
  supplyCase(
    "X5d",
    "a package inside of this one that is reported as hostile",
    "the bill of materials has its checksum, and what needs it",
    async () => {
      const script = new URL("../../../scripts/build/bundled-packages.mjs", import.meta.url).href;
      const { billOfMaterials } = (await import(/* @vite-ignore */ script)) as BuildScript;
      const lock = JSON.parse(read("package-lock.json"));
      const bundled = ["commander", "oidc-provider", "koa"].map((name) => `node_modules/${name}`);
      const bill = billOfMaterials(lock, JSON.parse(read("package.json")), bundled, new Map());
      const { components } = bill;
      const of = (name: string) => components.find(({ purl }) => purl.startsWith(`pkg:npm/${name}@`));
      const needs = new Map(bill.dependencies.map(({ ref, dependsOn }) => [ref, dependsOn]));
      const unhashed = components.filter(
        ({ hashes }) => hashes[0]?.alg !== "SHA-512" || hashes[0].content.length !== 128,
      );
      const dangling = [...needs.values()].flat().filter((ref) => !components.some(({ purl }) => purl === ref));
      const optional = ["%40napi-rs/keyring", "jq-wasm"].map((name) => of(name)?.scope);
      const again = billOfMaterials(lock, JSON.parse(read("package.json")), bundled, new Map());
      return {
        "has a serial number": /^urn:uuid:[\da-f]{8}-[\da-f]{4}-8[\da-f]{3}-8[\da-f]{3}-[\da-f]{12}$/.test(
          bill.serialNumber,
        ),
        "is the same for the same content": JSON.stringify(again) === JSON.stringify(bill),
        [`hashes: ${unhashed.map(({ purl }) => purl)}`]: unhashed.length === 0 && components.length > 10,
        [`optional: ${optional}`]: optional.every((scope) => scope === "optional"),
        required: [of("jose"), of("koa"), of("commander")].every((one) => one?.scope === "required"),
        "a graph": needs.get(of("oidc-provider")?.purl ?? "")?.includes(of("koa")?.purl ?? "?") === true,
        "from the root": needs.get(`pkg:npm/agentauth@${lock.version}`)?.includes(of("jose")?.purl ?? "?") === true,
        [`no ends: ${dangling}`]: dangling.length === 0,
      };
    },
  ),
];
