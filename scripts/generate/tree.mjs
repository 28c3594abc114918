// Reads the command tree, the output formats, the events and the recorded servers from a bundle of the sources that declare them.
import { mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { build } from "esbuild";

const ENTRY = `
import { COMMANDS } from "./src/cli/commands/all.gen.ts";
import { buildProgram } from "./src/cli/program.ts";
import { OUTPUT_FORMATS } from "./src/cli/output/formats.ts";
export { loginCommandOf } from "./test/vendors/vendor-command.ts";
import { EVENTS } from "./src/telemetry/events.ts";
import { describeProgram } from "./src/cli/commands/commands/run.ts";
const { root } = buildProgram({ argv: [], io: { stdout: { columns: 80 } } }, { text: "", error: "" }, { commands: COMMANDS });
export const tree = describeProgram(root);
export const formats = Object.entries(OUTPUT_FORMATS).map(([name, { description }]) => ({ name, description }));
export const events = EVENTS;
`;

/** The commands, the output formats, the events and the recorded servers as data: `{ tree, formats, events, servers }`. */
export async function readTree(root) {
  const folder = join(root, "node_modules", `.agentauth-tree-${process.pid}`);
  const outfile = join(folder, "program.mjs");
  mkdirSync(folder);
  try {
    await build({
      absWorkingDir: root,
      stdin: { contents: ENTRY, resolveDir: root, loader: "ts" },
      outfile,
      bundle: true,
      format: "esm",
      platform: "node",
      packages: "external",
      logLevel: "error",
      plugins: [{ name: "declared-only", setup: leaveOutWhatRuns }],
    });
    const { loginCommandOf, ...declared } = await import(pathToFileURL(outfile).href);
    return {
      ...declared,
      servers: recordedServers(root).map((shape) => ({ ...shape, command: loginCommandOf(shape) })),
    };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The recorded servers, in the order of their names. */
function recordedServers(root) {
  const folder = join(root, "test/vendors");
  const ids = readdirSync(folder).flatMap((name) => /^([^.]+)\.json$/.exec(name)?.[1] ?? []);
  return ids.sort().map((id) => JSON.parse(readFileSync(join(folder, `${id}.json`), "utf8")));
}

/** Excludes modules that a command loads only when it runs. */
function leaveOutWhatRuns({ onResolve }) {
  onResolve({ filter: /^[.#]/ }, ({ kind, path }) =>
    kind === "dynamic-import" ? { path, external: true } : undefined,
  );
}
