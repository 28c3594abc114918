// The JSON Schemas of pools, domains and devices as the command line prints them: the documented types, without the rules
// that only --strict checks.
import { printAll } from "./shapes.mjs";

const NAMES = { pool: "Pool_Summary", domain: "Domain_Summary", device: "Device_Summary" };

/** The schemas by the names of the outputs, as JSON. */
export function serviceSchemasText(contract) {
  const { schemas } = contract.components;
  const entries = Object.entries(NAMES).map(([name, key]) => [name, loosen(schemas[key], schemas)]);
  return `${printAll(Object.fromEntries(entries))}\n`;
}

/** The schema with its references resolved, known values as examples, and only types as rules. */
function loosen(schema, schemas) {
  if (schema.$ref !== undefined) {
    return { ...loosen(schemas[schema.$ref.replace("#/components/schemas/", "")], schemas), ...described(schema) };
  }
  if (schema.anyOf !== undefined) {
    const forms = schema.anyOf.filter(({ type }) => type !== "null").map((form) => loosen(form, schemas));
    const [form] = forms;
    if (forms.length !== 1) throw new Error("a field has one form, or null");
    return { ...form, ...described(schema), type: [form.type, "null"].flat() };
  }
  const values = schema.enum?.filter((value) => value !== null);
  return {
    type: schema.type,
    ...described(schema),
    ...(values && { examples: values }),
    ...(schema.items && { items: loosen(schema.items, schemas) }),
    ...(schema.properties && {
      properties: Object.fromEntries(
        Object.entries(schema.properties).map(([name, part]) => [name, loosen(part, schemas)]),
      ),
    }),
  };
}

/** Removes our notes on the contract: they are about requests, not about output. */
function described({ description }) {
  return description === undefined ? {} : { description: description.replace(/ Our choice: .*$/s, "") };
}
