import { existsSync, readFileSync } from "node:fs";
import { basename } from "node:path";
import { expect, it } from "vitest";
import { parse } from "yaml";
import { projectFiles } from "./helpers/project-files.js";

interface Step {
  run?: string;
  uses?: string;
  with?: Record<string, unknown>;
}
interface Job {
  "runs-on": string;
  steps: Step[];
  permissions?: Record<string, string>;
  strategy?: { matrix: { os?: string[]; node?: number[] } };
}

const read = (path: string) => readFileSync(path, "utf8");
const workflow = (name: string) => parse(read(`.github/workflows/${name}.yml`)) as { jobs: Record<string, Job> };
const jobs = ["ci", "foreign", "release"].flatMap((name) => Object.values(workflow(name).jobs));
const commands = [...jobs.flatMap(({ steps }) => steps.flatMap(({ run = [] }) => run)), read(".ci/run")].join("\n");

it("the workflows and .ci/run call scripts that exist", () => {
  const { scripts } = JSON.parse(read("package.json")) as { scripts: Record<string, string> };
  const called = [...commands.matchAll(/npm run (?:--silent |-s )?([\w:]+)/g)].map(([, name = ""]) => name);
  expect(called.length).toBeGreaterThan(20);
  expect(called.filter((name) => scripts[name] === undefined)).toEqual([]);
  const files = [...commands.matchAll(/(?:node|bash) ((?:scripts|\.ci)\/\S+)/g)].map(([, path = ""]) => path);
  const behind = called.flatMap((name) => /node (\S+\.mjs)/.exec(scripts[name] ?? "")?.[1] ?? []);
  expect([...files, ...behind].filter((path) => !existsSync(path))).toEqual([]);
});

it("the check of a laptop is a part of .ci/run", () => {
  const { scripts } = JSON.parse(read("package.json")) as { scripts: Record<string, string> };
  const steps = [...(scripts["check"] ?? "").matchAll(/npm run -s (\S+)/g)].map(([, name = ""]) => name);
  // `npm ci` builds, the site checks the comments, and coverage runs the tests.
  const own = steps.filter((name) => !["build", "check:docs"].includes(name));
  expect(own.length).toBeGreaterThan(7);
  for (const name of own) expect(read(".ci/run")).toContain(`npm run --silent ${name}\n`);
});

it("the workflow runs on each system with each Node", () => {
  const { check, platforms } = workflow("ci").jobs;
  const systems = [check?.["runs-on"], ...(platforms?.strategy?.matrix.os ?? [])];
  expect(systems.sort()).toEqual(["macos-latest", "ubuntu-latest", "windows-latest"]);
  for (const job of [check, platforms]) expect(job?.strategy?.matrix.node).toEqual(["20.19", "22", "24", "26"]);
});

it("the release is published by trust in the workflow, with no token", () => {
  const text = read(".github/workflows/release.yml");
  expect(text).not.toMatch(/secrets\.|_TOKEN|_authToken|registry-url/);
  expect(workflow("release").jobs["publish"]?.permissions?.["id-token"]).toBe("write");
});

it("no lock file and no configuration of npm names a registry", () => {
  const files = projectFiles(".").filter((path) => ["package-lock.json", ".npmrc"].includes(basename(path)));
  expect(files.length).toBeGreaterThan(5);
  for (const file of files) expect(read(file), file).not.toMatch(/"resolved"|registry\s*=/);
});
