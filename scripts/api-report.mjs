// Writes what each entry point of the built package exports, as declarations without comments, so that a review sees
// each change of the public interface as a diff: scripts/api-report/. With --check, compares instead.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { rollup } from "rollup";
import { dts } from "rollup-plugin-dts";
import ts from "typescript";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const folder = join(root, "scripts/api-report");
const check = process.argv.includes("--check");
const { name: packageName, exports } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
/** The names of the entry points, such as `agentauth/node`, by the files of their declarations. */
const names = new Map();
for (const [path, { types }] of Object.entries(exports))
  if (types !== undefined) names.set(join(root, types), `${packageName}${path.slice(1)}`);

mkdirSync(folder, { recursive: true });
let differs = false;
for (const [file, name] of names) {
  const report = join(folder, `${name.split("/")[1] ?? "index"}.api.md`);
  const text = `# \`${name}\`\n\n\`\`\`ts\n${withoutComments(await declarations(file))}\`\`\`\n`;
  if (!check) writeFileSync(report, text);
  else if (!existsSync(report) || readFileSync(report, "utf8") !== text) {
    differs = true;
    console.error(`${report} is not what ${name} exports: npm run api:report`);
  }
}
if (differs) process.exitCode = 1;

/** The declarations of an entry point in one text. Those of another one are imported by its name. */
async function declarations(file) {
  const others = new Map([...names].filter(([other]) => other !== file));
  const byName = {
    name: "by-name",
    resolveId(source, importer) {
      const target = importer && source.startsWith(".") ? resolve(dirname(importer), source) : source;
      const other = others.get(target.replace(/\.js$/, ".d.ts"));
      return other === undefined ? null : { id: other, external: true };
    },
  };
  const plugins = [byName, dts({ respectExternal: true })];
  const bundle = await rollup({ input: file, plugins, external: /^[^./]/, onLog() {} });
  const { output } = await bundle.generate({});
  await bundle.close();
  return output[0].code;
}

function withoutComments(code) {
  const source = ts.createSourceFile("entry.d.ts", code, ts.ScriptTarget.ESNext, false);
  return ts.createPrinter({ removeComments: true, newLine: ts.NewLineKind.LineFeed }).printFile(source);
}
