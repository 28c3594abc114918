// Bundled packages must not write to the terminal: a server's text may contain control sequences. The packages listed as
// silenced get a `console` that writes nothing, those listed as printing keep it, and any other package is an error.
import { readFile } from "node:fs/promises";
import { transform } from "esbuild";

/** Packages whose diagnostics must not be printed. */
const SILENCED = [
  "@colors/colors",
  "@modelcontextprotocol/client",
  "@modelcontextprotocol/server",
  "debug",
  "koa",
  "oidc-provider",
  "yaml",
];

/** Packages that print on purpose: the completion scripts of fish and PowerShell. */
const PRINTING = ["@bomb.sh/tab"];

const SILENT_CONSOLE = "const console = /* @__PURE__ */ new Proxy({}, { get: () => () => {} });";

/**
 * The esbuild plugin, and the check to run on the metafile of the same build.
 *
 * @returns `plugin` shadows `console` in the files of silenced packages; `check` throws when the bundle has a call of
 * `console` in a package that neither list names, or when a named package has none
 */
export function silentConsole({ silenced = SILENCED, printing = PRINTING } = {}) {
  /** Which package each file that uses `console` belongs to, by absolute path. */
  const users = new Map();
  const plugin = {
    name: "silent-console",
    setup(build) {
      build.onLoad({ filter: /[\\/]node_modules[\\/].*\.[cm]?js$/ }, async ({ path }) => {
        const source = await readFile(path, "utf8");
        if (!(await usesConsole(source))) return undefined;
        const name = packageOf(path);
        users.set(path, name);
        return silenced.includes(name) ? { contents: `${SILENT_CONSOLE}\n${source}`, loader: "js" } : undefined;
      });
    },
  };
  const check = ({ outputs }) => {
    const bundled = Object.values(outputs).flatMap(({ inputs }) => Object.entries(inputs));
    const paths = bundled.filter(([, { bytesInOutput }]) => bytesInOutput > 0).map(([path]) => path);
    const found = new Set();
    for (const [path, name] of users) if (paths.some((input) => path.endsWith(`/${input}`))) found.add(name);
    const listed = [...silenced, ...printing];
    const unlisted = [...found].filter((name) => !listed.includes(name));
    const unused = listed.filter((name) => !found.has(name));
    if (unlisted.length > 0) {
      throw new Error(
        `bundled packages call console: ${unlisted.join(", ")}; list them in scripts/build/silent-console.mjs`,
      );
    }
    if (unused.length > 0) {
      throw new Error(
        `no bundled file of ${unused.join(", ")} calls console: remove it from scripts/build/silent-console.mjs`,
      );
    }
  };
  return { plugin, check };
}

/** Whether code, without its comments, contains the identifier. */
async function usesConsole(source) {
  if (!source.includes("console")) return false;
  const { code } = await transform(source, { minifyWhitespace: true, legalComments: "none" });
  return /(?<![\w$.-])console\b(?!["'\s-])/.test(code);
}

function packageOf(path) {
  return /^.*[\\/]node_modules[\\/]((?:@[^\\/]+[\\/])?[^\\/]+)[\\/]/.exec(path)?.[1]?.replace("\\", "/") ?? "";
}
