import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { ENVIRONMENT } from "../../../src/cli/runtime/agent-mode.js";

const SOURCES = fileURLToPath(new URL("../../../src/cli/", import.meta.url));

/** Variables that the system or another program sets. */
const OF_THE_MACHINE = [
  ...[
    ...["USERPROFILE", "APPDATA", "LOCALAPPDATA", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "PATH", "PATHEXT", "LANG"],
    ...["LC_ALL", "LC_CTYPE", "SSH_CONNECTION"],
  ],
  ...["TERM_PROGRAM", "VTE_VERSION", "WT_SESSION", "KITTY_WINDOW_ID", "KONSOLE_VERSION", "DOMTERM"],
  // What exec sets for another program; doctor only hides its value.
  "AGENTAUTH_TOKEN",
  ...["KUBERNETES_EXEC_INFO", "AI_AGENT", "NODE_TLS_REJECT_UNAUTHORIZED"],
];

it("help environment names every variable that the command line reads", () => {
  const files = readdirSync(SOURCES, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".ts"));
  const read = files.flatMap((name) =>
    [...readFileSync(join(SOURCES, name), "utf8").matchAll(/\benv\["([A-Z_]+)"\]/g)].map(([, variable]) => variable),
  );
  const named = ENVIRONMENT.flatMap(([names]) => names.split(", "));
  expect(read.length).toBeGreaterThan(10);
  expect([...new Set(read)].filter((name = "") => ![...named, ...OF_THE_MACHINE].includes(name))).toEqual([]);
});
