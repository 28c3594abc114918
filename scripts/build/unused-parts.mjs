// Packages import much that their use here never reaches: validators of settings without a schema, a database of two
// thousand media types. It would be a seventh of what a user installs.
import { readFile } from "node:fs/promises";

/** What a package imports and never calls here: by package, the names that it imports from each module. */
const UNUSED = {
  // The settings file has neither a schema nor migrations: src/cli/config/ checks it.
  conf: { "ajv/dist/2020.js": ["Ajv2020"], "ajv-formats": ["default"], semver: ["default"] },
  // The stdio proxy uses the transport alone, which validates no schema.
  "@modelcontextprotocol/client": { "ajvProvider-": ["n"] },
};

/** The media types that a service of OAuth can answer with or be asked for. */
const MEDIA_TYPE =
  /^(?:text\/(?:html|plain|css|javascript|event-stream)|application\/(?:.*json|.*jwt|javascript|xml|octet-stream|x-www-form-urlencoded))$/;

/**
 * The esbuild plugin that leaves them out. A function that is called after all throws.
 *
 * @returns `plugin`, and `check`, which throws when a package no longer imports what is listed
 */
export function unusedParts(unused = UNUSED) {
  const missing = new Set(
    Object.entries(unused).flatMap(([user, parts]) => Object.keys(parts).map((part) => `${user}: ${part}`)),
  );
  const plugin = {
    name: "unused-parts",
    setup(build) {
      build.onResolve({ filter: /ajv|semver/ }, ({ path, importer }) => {
        const found = findPart(unused, path, importer.replaceAll("\\", "/"));
        if (found === undefined) return undefined;
        missing.delete(`${found.user}: ${found.part}`);
        return {
          path: `${found.user}/${found.part}`,
          namespace: "unused-parts",
          pluginData: found,
          sideEffects: false,
        };
      });
      build.onLoad({ filter: /.*/, namespace: "unused-parts" }, ({ pluginData: { user, part, names } }) => {
        const message = JSON.stringify(`the bundle has no ${part} for ${user}: see scripts/build/unused-parts.mjs`);
        const body = `function () { throw new Error(${message}); }`;
        return { contents: names.map((name) => exported(name, body)).join("\n"), loader: "js" };
      });
      build.onLoad({ filter: /[\\/]mime-db[\\/]db\.json$/ }, async ({ path }) => {
        const all = Object.entries(JSON.parse(await readFile(path, "utf8")));
        const contents = JSON.stringify(Object.fromEntries(all.filter(([type]) => MEDIA_TYPE.test(type))));
        return { contents, loader: "json" };
      });
    },
  };
  const check = () => {
    if (missing.size === 0) return;
    throw new Error(`no longer imported: ${[...missing].join(", ")}; change scripts/build/unused-parts.mjs`);
  };
  return { plugin, check };
}

function findPart(unused, path, importer) {
  for (const [user, parts] of Object.entries(unused)) {
    if (!importer.includes(`/node_modules/${user}/`)) continue;
    const part = Object.keys(parts).find((name) => path === name || path.startsWith(`./${name}`));
    if (part !== undefined) return { user, part, names: parts[part] };
  }
  return undefined;
}

function exported(name, body) {
  return name === "default" ? `export default ${body}` : `export const ${name} = ${body};`;
}
