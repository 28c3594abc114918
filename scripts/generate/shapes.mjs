// The table of shapes: the checks of a page of the service, as data that loads quickly.

const ANNOTATIONS = ["description", "examples"];
const CONSTRAINTS = ["pattern", "minimum", "format", "minItems", "maxItems"];
const KEYWORDS = [...ANNOTATIONS, ...CONSTRAINTS, "type", "enum", "items", "properties", "required"];

/** The text of the generated table. */
export function shapesText(contract, source) {
  const schemas = contract.components.schemas;
  const shape = (schema, at) => toShape(schema, at, schemas);
  const shapes = {
    pool: shape(schemas.Pool_Summary, "Pool_Summary"),
    domain: shape(schemas.Domain_Summary, "Domain_Summary"),
    device: shape(schemas.Device_Summary, "Device_Summary"),
    pagination: shape(schemas.PaginationOutput, "PaginationOutput"),
    sorting: shape(schemas.Sorting, "Sorting"),
    deviceSorting: shape(schemas.Device_List.properties.sorting.anyOf[0], "Device_List.sorting"),
  };
  return `// Generated from ${source} by scripts/generate.mjs. Do not edit.\n\nexport const shapes = ${printAll(shapes)} as const;\n`;
}

/**
 * The constraints of a schema with its references resolved.
 *
 * @param at the place of the schema, for the message about an unsupported keyword
 */
function toShape(schema, at, schemas) {
  if (schema.$ref !== undefined) {
    only(schema, ["$ref", "description"], at);
    const name = schema.$ref.replace("#/components/schemas/", "");
    return toShape(schemas[name], name, schemas);
  }
  if (schema.anyOf !== undefined) {
    only(schema, [...ANNOTATIONS, "anyOf"], at);
    const forms = schema.anyOf.filter((form) => form.type !== "null");
    if (forms.length !== 1) throw new Error(`${at}: a shape has one form, or null`);
    return { ...toShape(forms[0], at, schemas), ...(forms.length < schema.anyOf.length && { nullable: true }) };
  }
  if (schema.allOf !== undefined) {
    only(schema, [...ANNOTATIONS, "allOf"], at);
    return schema.allOf.map((part) => toShape(part, at, schemas)).reduce(intersect);
  }
  return toPlainShape(schema, at, schemas);
}

function toPlainShape(schema, at, schemas) {
  only(schema, KEYWORDS, at);
  const all = [schema.type].flat();
  const types = all.filter((type) => type !== "null");
  if (types.length !== 1 || types[0] === undefined) throw new Error(`${at}: a shape has one type, or null`);
  const shape = { type: types[0], ...(types.length < all.length && { nullable: true }) };
  if (schema.enum) shape.enum = schema.enum.filter((value) => value !== null);
  for (const keyword of CONSTRAINTS) if (keyword in schema) shape[keyword] = schema[keyword];
  if (schema.items) shape.items = toShape(schema.items, `${at}[]`, schemas);
  if (schema.properties) {
    const properties = Object.entries(schema.properties);
    shape.properties = Object.fromEntries(
      properties.map(([name, part]) => {
        const { nullable, ...property } = toShape(part, `${at}.${name}`, schemas);
        if (schema.required?.includes(name)) return [name, { ...property, ...(nullable && { nullable }) }];
        // What we allow to be null may be absent too: one word for both.
        if (!nullable) throw new Error(`${at}.${name}: a field that is not required may be null`);
        return [name, { ...property, optional: true }];
      }),
    );
  }
  return shape;
}

function intersect(left, right) {
  const properties = { ...left.properties };
  for (const [name, part] of Object.entries(right.properties ?? {}))
    properties[name] = { ...properties[name], ...part };
  return { ...left, ...right, properties };
}

function only(schema, keywords, at) {
  const unknown = Object.keys(schema).find((keyword) => !keywords.includes(keyword));
  if (unknown !== undefined) throw new Error(`${at}: the table of shapes does not support "${unknown}"`);
}

/** Shapes or schemas by their names, as JSON with one line per property. */
export function printAll(named) {
  const entries = Object.entries(named).map(([name, one]) => `  ${JSON.stringify(name)}: ${print(one, "  ")}`);
  return `{\n${entries.join(",\n")}\n}`;
}

function print({ properties, ...own }, indent) {
  const head = JSON.stringify(own);
  if (properties === undefined) return head;
  const inner = `${indent}  `;
  const lines = Object.entries(properties).map(
    ([name, shape]) => `${inner}${JSON.stringify(name)}: ${print(shape, inner)}`,
  );
  return `${head.slice(0, -1)},"properties":{\n${lines.join(",\n")}\n${indent}}}`;
}
