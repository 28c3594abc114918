// A module of Node that is imported is loaded at the start, 3 ms each for the larger ones, though most commands call none of
// its functions.

/** The functions that load their module when they are called. */
const FUNCTIONS = {
  "node:child_process": ["spawn", "spawnSync"],
  "node:crypto": [
    "createCipheriv",
    "createDecipheriv",
    "createHash",
    "createPrivateKey",
    "createSecretKey",
    "generateKeyPairSync",
    "hash",
    "randomBytes",
    "randomUUID",
    "sign",
    "timingSafeEqual",
    "verify",
  ],
  "node:dns/promises": ["lookup"],
  "node:http": ["createServer", "request"],
  "node:net": ["connect", "isIP"],
  "node:os": ["homedir", "hostname", "release", "tmpdir", "uptime"],
  "node:readline": ["createInterface"],
  "node:timers/promises": ["setTimeout"],
  "node:tls": ["connect"],
};

const NAMESPACE = "lazy-builtin";

/** Whether the path of a module in a metafile is one of those that the plugin made. */
export function isLazyBuiltin(path) {
  return path.startsWith(`${NAMESPACE}:`);
}

/**
 * The esbuild plugin that loads modules of Node with the first call of one of their functions.
 *
 * @param isLazy whether the imports of a module are replaced, by its absolute path
 */
export function lazyBuiltins(isLazy) {
  return {
    name: "lazy-builtins",
    setup({ onResolve, onLoad }) {
      onResolve({ filter: /^node:/ }, ({ path, importer, kind }) =>
        kind === "import-statement" && path in FUNCTIONS && isLazy(importer)
          ? { path, namespace: NAMESPACE, sideEffects: false }
          : undefined,
      );
      // The chunk plan imports them by their path in the metafile.
      onResolve({ filter: /^lazy-builtin:/ }, ({ path }) => ({
        path: path.slice(NAMESPACE.length + 1),
        namespace: NAMESPACE,
        sideEffects: false,
      }));
      onLoad({ filter: /^/, namespace: NAMESPACE }, ({ path }) => ({ contents: callers(path), loader: "js" }));
    },
  };
}

function callers(path) {
  const lines = FUNCTIONS[path].map((name) => `export const ${name} = (...given) => loaded().${name}(...given);`);
  return `let found;\nconst loaded = () => (found ??= process.getBuiltinModule(${JSON.stringify(path)}));\n${lines.join("\n")}\n`;
}
