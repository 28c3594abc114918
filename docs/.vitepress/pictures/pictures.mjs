// Writes docs/images/*-{light,dark}.svg: what the built command prints on a terminal, against a sandbox. With --check it
// compares the text of the pictures with what is printed now, except for times, ports and identifiers of the run. That of
// doctor is not compared: it shows the machine.
import { spawnSync } from "node:child_process";
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { startSandbox } from "../../../dist/sandbox/index.js";
import { svgOf, THEMES, textOf } from "./svg.mjs";
import { outputOf, screenOf } from "./terminal.mjs";

const IMAGES = fileURLToPath(new URL("../../images", import.meta.url));
const COLUMNS = 110;
/** A client ID as the sandbox makes them. */
const SAMPLE = "Ltxi85Inm0RC9sBg8kchZwzWGS9CPL-vrYhwrWfIRej";
const isCheck = process.argv.includes("--check");
if (isCheck && spawnSync("script", ["--version"]).error) {
  console.log("skipped: the pictures are not compared, since the program script, which makes a terminal, is not here");
  process.exit(0);
}

const folder = mkdtempSync(join(tmpdir(), "agentauth-pictures-"));
// The port that the guides name: what is renamed after the layout may break a table.
const sandbox = await startSandbox({ port: 4000, devices: 120, autoApprove: true });
try {
  for (const scene of scenes()) await settle(scene);
} finally {
  await sandbox.close();
  rmSync(folder, { recursive: true, force: true });
}

function scenes() {
  const mcp = sandbox.mcpUrl;
  const flags = ` --login-timeout 300 --browser ${browser()}`;
  const pool = `--pool ${sandbox.ids.pool}`;
  return [
    {
      name: "login",
      commands: [`login ${mcp}${flags}`, `mcp call ${mcp} echo --args '{"text":"hello"}'`, "status"],
    },
    { name: "list", commands: [`devices list ${pool} --sort last_seen:desc --limit 8`] },
    ...(isCheck ? [] : [{ name: "doctor", commands: ["doctor"] }]),
    // For the landing page on a telephone.
    {
      name: "narrow",
      columns: 50,
      before: `config set pool ${sandbox.ids.pool}`,
      commands: [`login ${mcp} -q${flags}`, "devices list --limit 3 -q"],
    },
  ];
}

async function settle({ name, columns = COLUMNS, before, commands }) {
  if (before !== undefined) await outputOf(before, columns, environment());
  const lines = await screenOf({ columns, commands }, environment(), rename);
  const title = commands.map((command) => `agentauth ${rename(command)}`).join(", ");
  for (const [theme, colors] of Object.entries(THEMES)) {
    const path = join(IMAGES, `${name}-${theme}.svg`);
    const svg = svgOf(lines, columns, title, colors);
    if (!isCheck) writeFileSync(path, svg);
    else compare(path, textOf(readFileSync(path, "utf8")).map(masked), textOf(svg).map(masked));
  }
}

function compare(path, shown, printed) {
  const nth = Array.from({ length: Math.max(shown.length, printed.length) }, (_, row) => row).find((row) => {
    return shown[row] !== printed[row];
  });
  if (nth === undefined) return;
  console.error(`${path}: line ${nth + 1} is not what is printed: npm run docs:pictures`);
  console.error(`  shown:   ${shown[nth]}\n  printed: ${printed[nth]}`);
  process.exitCode = 1;
}

/** Without what differs from run to run and from day to day: numbers, times, identifiers, charts, and spaces around them. */
function masked(line) {
  return line
    .replace(/\d{4}-\d\d-\d\d(?:T[\d:.]+Z)?/g, "<time>")
    .replace(
      /(?:in )?\b[\d.]+ ?(?:second|minute|hour|day|week|month|year|[smhdwy]|mo|min)s?\b(?: ago)?|\bnow\b/g,
      "<time>",
    )
    .replace(/Node v[\d.]+|v\d+\.\d+\.\d+|linux \S+ \S+/g, "<machine>")
    .replace(/\b(dev|pool|dom|acc)_\w+/g, "$1_<id>")
    .replace(/[\u2581-\u258f]+/g, "<bar>")
    .replace(/[\d,.]+/g, "<n>")
    .replace(/(?: +|<bar>)+/g, " ");
}

/**
 * The link, keys and folders of the run as fixed ones of the same width; only the folder of settings is shorter. The
 * marks around cells with right-to-left text, which the terminal of the picture would draw, are left out.
 */
function rename(text) {
  return text
    .replace(/[\u2068\u2069]/g, "")
    .replaceAll(` --login-timeout 300 --browser ${join(folder, "browser")}`, "")
    .replace(/(127\.0\.0\.1:)\d{5}\/[\w-]{12}$/m, "$140723/Yx3vPq81LmTz")
    .replace(/((?:client_id|code_challenge|state)(?:=|":"))[\w-]{43}/g, `$1${SAMPLE}`)
    .replaceAll(join(folder, "home"), "~/.config/agentauth");
}

function environment() {
  return {
    PATH: process.env["PATH"],
    HOME: folder,
    TERM: "xterm-256color",
    LANG: "C.UTF-8",
    AGENTAUTH_HOME: join(folder, "home"),
    AGENTAUTH_BASE_URL: sandbox.baseUrl,
    AGENTAUTH_API_TOKEN: sandbox.apiToken,
  };
}

/** Follows the redirects of the login page, as a browser does that approves. */
function browser() {
  const path = join(folder, "browser");
  writeFileSync(path, `#!/bin/sh\nexec "${process.execPath}" -e "fetch(process.argv[1])" "$1"\n`);
  chmodSync(path, 0o755);
  return path;
}
