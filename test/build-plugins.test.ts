import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { build, type Plugin } from "esbuild";
import { feature } from "topojson-client";
import { describe, expect, it } from "vitest";
import atlas from "world-atlas/countries-110m.json" with { type: "json" };
import { temporaryFolder } from "./helpers/folder.js";

const [LAZY, CLASSES, PLAN, NOTICES, VALIDATOR, NAMES, MAP] = [
  "../scripts/build/lazy-builtins.mjs",
  "../scripts/build/fetch-classes.mjs",
  "../scripts/build/chunk-plan.mjs",
  "../scripts/build/notices.mjs",
  "../scripts/build/json-schema-validator.mjs",
  "../scripts/build/names.mjs",
  "../scripts/build/world-map.mjs",
];
const { lazyBuiltins } = (await import(LAZY)) as { lazyBuiltins: (isLazy: (path: string) => boolean) => Plugin };
const { fetchClasses } = (await import(CLASSES)) as { fetchClasses: (root: string) => Plugin };
const { planChunks } = (await import(PLAN)) as {
  planChunks: (metafile: object, options: object) => Map<string, string[]>;
};
const { notices } = (await import(NOTICES)) as { notices: (folders: string[]) => string };
const { jsonSchemaValidator } = (await import(VALIDATOR)) as {
  jsonSchemaValidator: () => { plugin: Plugin; check: () => void };
};
const { removeNames } = (await import(NAMES)) as {
  removeNames: (source: string, inputs: string[], root: string) => string;
};
type Atlas = Parameters<typeof feature>[0];
const { worldMap } = (await import(MAP)) as { worldMap: () => Plugin };

async function bundled(files: Record<string, string>, plugin: Plugin): Promise<string> {
  const folder = temporaryFolder();
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
  const { outputFiles } = await build({
    absWorkingDir: folder,
    entryPoints: ["main.js"],
    bundle: true,
    write: false,
    format: "esm",
    platform: "node",
    logLevel: "silent",
    plugins: [plugin],
  });
  return outputFiles[0]?.text ?? "";
}

const load = (code: string) => import(`data:text/javascript,${encodeURIComponent(code)}`);

it("loads a module of Node with the first call of its function", async () => {
  const source = {
    "main.js": 'import { createHash } from "node:crypto"; export const make = () => createHash("sha256");',
  };
  const lazy = await bundled(
    source,
    lazyBuiltins(() => true),
  );
  expect(lazy).not.toMatch(/from\s*"node:crypto"/);
  expect((await load(lazy)).make().update("a").digest("hex")).toMatch(/^ca978112/);
  expect(
    await bundled(
      source,
      lazyBuiltins(() => false),
    ),
  ).toMatch(/from\s*"node:crypto"/);
});

it("refuses to load what is no function of the table", async () => {
  const source = { "main.js": 'import { Agent } from "node:http"; export const agent = new Agent();' };
  await expect(
    bundled(
      source,
      lazyBuiltins(() => true),
    ),
  ).rejects.toThrow(/No matching export/);
});

it("gives a package our classes of fetch, which take objects of the global ones", async () => {
  const source = {
    "main.js": 'export * from "openapi-fetch";',
    "node_modules/openapi-fetch/index.js":
      "export const classes = { Headers, Request, Response, FormData, Blob }; export const is = (value, name) => value instanceof classes[name];",
  };
  const { classes, is } = await load(await bundled(source, fetchClasses(join(import.meta.dirname, ".."))));
  for (const name of ["Headers", "Request", "Response", "FormData"] as const) {
    expect(classes[name]).not.toBe(globalThis[name]);
    const made = name === "Request" ? new Request("https://a.example") : new globalThis[name as "Headers"]();
    expect([is(made, name), is({}, name), is(null, name)]).toEqual([true, false, false]);
  }
  expect([classes.Blob, is(new classes.Headers({ a: "1" }), "Headers")]).toEqual([Blob, true]);
});

/** A metafile of modules with their static imports, and of main.js that loads some by `import()`. */
function metafile(statics: Record<string, string[]>, lazy: string[], sizes: Record<string, number>) {
  const paths = Object.keys(statics);
  const imported = (path: string) => [
    ...(statics[path] ?? []).map((to) => ({ path: to, kind: "import-statement" })),
    ...(path === "src/main.js" ? lazy.map((to) => ({ path: to, kind: "dynamic-import" })) : []),
  ];
  return {
    inputs: Object.fromEntries(paths.map((path) => [path, { imports: imported(path) }])),
    outputs: {
      all: { inputs: Object.fromEntries(paths.map((path) => [path, { bytesInOutput: sizes[path] ?? 100 }])) },
    },
  };
}

it("joins small chunks, but not where the imports of one would come with it", () => {
  const plan = (imports: string[]) =>
    planChunks(
      metafile(
        {
          "src/main.js": [],
          "lib/other.js": ["src/large.js"],
          "src/x.js": ["src/shared.js"],
          "src/y.js": ["src/shared.js", "src/small.js"],
          "src/shared.js": [],
          "src/small.js": imports,
          "src/large.js": [],
        },
        ["lib/other.js", "src/x.js", "src/y.js"],
        { "src/large.js": 500_000 },
      ),
      { folder: "src/", shared: "src/main.js", entries: ["src/main.js"] },
    ).get("src/x.js") ?? [];
  expect(plan([])).toContain("src/small.js");
  expect(plan(["src/large.js"])).not.toContain("src/small.js");
});

it("writes a licence once for its packages, with every copyright line", () => {
  const folder = temporaryFolder();
  const licence = (holder: string) => `MIT License\n\n${holder}\n\nPermission is granted, if the above\nnotice stays.`;
  const files = {
    one: licence("Copyright (c) 2020 One\n(c) 2021 Another"),
    two: licence("Copyright 2022 Two").replace("above\nnotice", "above notice"),
    three: licence("Copyright (c) 2023 Three").replace("Permission", "No permission"),
  };
  const folders = Object.entries(files).map(([name, text]) => {
    mkdirSync(join(folder, name));
    writeFileSync(join(folder, name, "package.json"), JSON.stringify({ name, version: "1.0.0", license: "MIT" }));
    writeFileSync(join(folder, name, "LICENSE"), text);
    return join(folder, name);
  });
  const separator = `\n${"-".repeat(72)}\n\n`;
  const shared = "MIT License\n\nPermission is granted, if the above\nnotice stays.\n";
  expect(notices(folders).split(separator)).toEqual([
    `one 1.0.0 (MIT)\n  Copyright (c) 2020 One\n  (c) 2021 Another\ntwo 1.0.0 (MIT)\n  Copyright 2022 Two\n\n${shared}`,
    `three 1.0.0 (MIT)\n\n${files.three}\n`,
  ]);
});

describe("a chunk as CommonJS", () => {
  const NAME = "../scripts/build/common-js.mjs";
  type Outputs = Record<string, { inputs: object; imports: { path: string; kind: string; external?: boolean }[] }>;

  async function converted(text: string, lazy: readonly string[]): Promise<string> {
    const { toCommonJs } = (await import(NAME)) as {
      toCommonJs: (outputs: Outputs, options: { root: string; target: string }) => Promise<void>;
    };
    const root = temporaryFolder();
    writeFileSync(join(root, "a.js"), text);
    writeFileSync(join(root, "b.cjs"), "exports.b = 1; exports.count = (exports.count ?? 0) + 1;");
    const imports = lazy.map((path) => ({ path, kind: "dynamic-import" }));
    await toCommonJs({ "a.js": { imports, inputs: {} } }, { root, target: "node20.19" });
    return join(root, "a.cjs");
  }

  it("loads the chunks that it imports, at the start or later, and knows its address", async () => {
    const text = [
      'import { b } from "./b.js";',
      'export const early = b, later = () => import("./b.js"), foreign = () => import("node:os"), url = import.meta.url;',
    ].join("\n");
    const file = await converted(text, ["b.js"]);
    const { early, later, foreign, url } = await import(file);
    expect([early, (await later()).b, url]).toEqual([1, 1, pathToFileURL(file).href]);
    expect((await foreign()).default).toBe(await import("node:os").then((os) => os.default));
  });

  it("is refused where an import() was not found in its text", async () => {
    await expect(converted("export const later = (name) => import(name);", ["b.js"])).rejects.toThrow("0 were found");
  });
});

it("gives the server of the MCP SDK a validator that accepts and rejects as ajv does", async () => {
  const { plugin, check } = jsonSchemaValidator();
  expect(check).toThrow("the MCP SDK has another validator");
  const from = join(import.meta.dirname, "../node_modules/@modelcontextprotocol/server/dist/index.mjs");
  const code = await bundled({ "main.js": `export { fromJsonSchema } from ${JSON.stringify(from)};` }, plugin);
  check();
  expect(code).not.toContain("ajv");
  const folder = temporaryFolder();
  writeFileSync(join(folder, "sdk.mjs"), code);
  const small = (await import(
    pathToFileURL(join(folder, "sdk.mjs")).href
  )) as typeof import("@modelcontextprotocol/server");
  const withAjv = await import("@modelcontextprotocol/server");
  const schema = {
    type: "object",
    properties: {
      when: { type: "string", format: "date-time" },
      count: { type: "integer", minimum: 1 },
      kind: { enum: ["a", "b"] },
      tags: { type: "array", prefixItems: [{ type: "string" }], items: false },
    },
    required: ["count"],
    additionalProperties: false,
  } as const;
  const isValid = async (sdk: typeof small, value: object) =>
    (await sdk.fromJsonSchema(schema)["~standard"].validate(value)).issues === undefined;
  const values = [
    { count: 1 },
    { count: 1, when: "2026-01-01T00:00:00Z", kind: "a", tags: ["x"] },
    {},
    { count: 0 },
    { count: 1.5 },
    { count: 1, when: "yesterday" },
    { count: 1, kind: "c" },
    { count: 1, tags: [1] },
    { count: 1, tags: ["x", "y"] },
    { count: 1, more: true },
  ];
  const [ours, theirs] = await Promise.all(
    [small, withAjv].map((sdk) => Promise.all(values.map((value) => isValid(sdk, value)))),
  );
  expect(ours).toEqual([true, true, ...values.slice(2).map(() => false)]);
  expect(ours).toEqual(theirs);
});

it("removes the names of functions that only packages have, for which no code reads them", () => {
  const root = temporaryFolder();
  writeFileSync(join(root, "own.ts"), "function read() {}");
  const source =
    'function read(){}__name(read,"read");function parse2(){}__name(parse2,"parse");class A{static{__name(this,"A")}}';
  const inputs = ["own.ts", "node_modules/zod/v4/core/parse.js"];
  expect(removeNames(source, inputs, root)).toBe(source.replace('__name(parse2,"parse")', "parse2"));
  expect(removeNames(source, ["own.ts"], root)).toBe(source);
});

it("keeps the shapes of the countries in the reduced atlas", async () => {
  const shapesOf = (given: Atlas) => {
    const { countries } = given.objects;
    if (countries?.type !== "GeometryCollection") throw new TypeError("no countries");
    const shapes = feature(given, countries).features.map(({ id, geometry }) => ({ id, geometry }));
    return shapes.filter(({ id }) => id !== "010");
  };
  const numbers = (value: unknown) =>
    JSON.stringify(value)
      .match(/-?\d+(?:\.\d+)?(?:e-\d+)?/g)
      ?.map(Number) ?? [];
  const forms = (value: unknown) => JSON.stringify(value).replaceAll(/-?\d+(?:\.\d+)?(?:e-\d+)?/g, "0");
  const full = shapesOf(atlas as unknown as Atlas);
  const source = {
    "main.js": 'export { default } from "world-atlas/countries-110m.json";',
    "node_modules/world-atlas/countries-110m.json": JSON.stringify(atlas),
  };
  const reduced = shapesOf((await load(await bundled(source, worldMap()))).default);
  expect(full.length).toBeGreaterThan(150);
  expect(forms(reduced)).toBe(forms(full));
  const wanted = numbers(full);
  const furthest = Math.max(...numbers(reduced).map((value, index) => Math.abs(value - (wanted[index] ?? 0))));
  expect(furthest).toBeLessThan(0.011);
});
