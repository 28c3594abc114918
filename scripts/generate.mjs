// Writes what is derived from openapi.yaml: the types and the table of shapes. With --check it writes nothing and fails
// where a file is not what openapi.yaml gives.
import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parse } from "yaml";

const CONTRACT = "openapi.yaml";
const TYPES = "src/api/schema.gen.ts";
const SHAPES = "src/api/shapes.gen.ts";

const ANNOTATIONS = ["description", "examples", "x-nullable-by-service"];
const CONSTRAINTS = ["pattern", "minimum", "format", "minItems", "maxItems"];
const KEYWORDS = [...ANNOTATIONS, ...CONSTRAINTS, "type", "enum", "items", "properties"];

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const check = process.argv.includes("--check");

const contract = parse(readFileSync(join(root, CONTRACT), "utf8"));
const stale = [shapesAreWrong() && SHAPES, typesAreWrong() && TYPES].filter(Boolean);
for (const file of stale) console.error(`${file} is not what ${CONTRACT} gives: run "npm run generate"`);
if (stale.length > 0) process.exitCode = 1;

/** Runs openapi-typescript, which writes or checks; whether it failed. */
function typesAreWrong() {
  const manifest = createRequire(import.meta.url).resolve("openapi-typescript/package.json");
  const args = [join(dirname(manifest), "bin/cli.js"), CONTRACT, "--output", TYPES, "--array-length"];
  const run = spawnSync(process.execPath, check ? [...args, "--check"] : args, { cwd: root, encoding: "utf8" });
  if (run.status === 0) return false;
  console.error(run.stderr);
  if (!check) process.exit(1);
  return true;
}

/** Writes the table of shapes, or compares it; whether it differs. */
function shapesAreWrong() {
  const schemas = contract.components.schemas;
  const shapes = {
    pool: toShape(schemas.Pool_Summary, "Pool_Summary"),
    domain: toShape(schemas.Domain_Summary, "Domain_Summary"),
    device: toShape(schemas.Device_Summary, "Device_Summary"),
    pagination: toShape(schemas.PaginationOutput, "PaginationOutput"),
    sorting: toShape(schemas.Sorting, "Sorting"),
    deviceSorting: toShape(schemas.Device_List.properties.sorting, "Device_List.sorting"),
  };
  const entries = Object.entries(shapes).map(([name, shape]) => `  ${name}: ${print(shape, "  ")},\n`);
  const text = `// Generated from ${CONTRACT} by scripts/generate.mjs. Do not edit.\n\nexport const shapes = {\n${entries.join("")}} as const;\n`;
  const path = join(root, SHAPES);
  if (check) return readOrNothing(path) !== text;
  writeFileSync(path, text);
  return false;
}

function readOrNothing(path) {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}

/**
 * The constraints of a schema with its references resolved. Null is left out where only our leniency allows it.
 *
 * @param at where the schema stands, for the message about a keyword that the table could not carry
 */
function toShape(schema, at) {
  if (schema.$ref !== undefined) {
    only(schema, ["$ref"], at);
    const name = schema.$ref.replace("#/components/schemas/", "");
    return toShape(contract.components.schemas[name], name);
  }
  if (schema.anyOf !== undefined) {
    only(schema, [...ANNOTATIONS, "anyOf"], at);
    const forms = schema.anyOf.filter((form) => form.type !== "null");
    if (forms.length !== 1) throw new Error(`${at}: a shape has one form, or null`);
    return { ...toShape(forms[0], at), ...nullable(schema) };
  }
  if (schema.allOf !== undefined) {
    only(schema, [...ANNOTATIONS, "allOf"], at);
    return schema.allOf.map((part) => toShape(part, at)).reduce(intersect);
  }
  return toPlainShape(schema, at);
}

function toPlainShape(schema, at) {
  only(schema, KEYWORDS, at);
  const types = [schema.type].flat().filter((type) => type !== "null");
  if (types.length !== 1 || types[0] === undefined) throw new Error(`${at}: a shape has one type, or null`);
  const shape = { type: types[0], ...nullable(schema) };
  if (schema.enum) shape.enum = schema.enum.filter((value) => value !== null);
  for (const keyword of CONSTRAINTS) if (keyword in schema) shape[keyword] = schema[keyword];
  if (schema.items) shape.items = toShape(schema.items, `${at}[]`);
  if (schema.properties) {
    const properties = Object.entries(schema.properties);
    shape.properties = Object.fromEntries(properties.map(([name, part]) => [name, toShape(part, `${at}.${name}`)]));
  }
  return shape;
}

function nullable(schema) {
  return schema["x-nullable-by-service"] === true ? { nullable: true } : {};
}

function intersect(left, right) {
  const properties = { ...left.properties };
  for (const [name, part] of Object.entries(right.properties ?? {}))
    properties[name] = { ...properties[name], ...part };
  return { ...left, ...right, properties };
}

function only(schema, keywords, at) {
  const unknown = Object.keys(schema).find((keyword) => !keywords.includes(keyword));
  if (unknown !== undefined) throw new Error(`${at}: the table of shapes cannot carry "${unknown}"`);
}

/** One line a property. */
function print({ properties, ...own }, indent) {
  const head = JSON.stringify(own);
  if (properties === undefined) return head;
  const inner = `${indent}  `;
  const lines = Object.entries(properties).map(
    ([name, shape]) => `${inner}${JSON.stringify(name)}: ${print(shape, inner)},\n`,
  );
  return `${head.slice(0, -1)},"properties":{\n${lines.join("")}${indent}}}`;
}
