/** Words for writing JSON Schemas (draft 2020-12) down. */

/** A schema, or a part of one. */
export interface JsonSchema {
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly examples?: readonly unknown[];
  readonly format?: string;
  readonly items?: JsonSchema;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: JsonSchema | boolean;
  readonly anyOf?: readonly JsonSchema[];
  readonly $ref?: string;
  readonly $defs?: Readonly<Record<string, JsonSchema>>;
}

/** A text. */
export function text(description: string): JsonSchema {
  return { type: "string", description };
}

/** A time as RFC 3339 has it, in UTC. */
export function time(description: string): JsonSchema {
  return { type: "string", format: "date-time", description };
}

/** An absolute URL. */
export function address(description: string): JsonSchema {
  return { type: "string", format: "uri", description };
}

/** A whole number. */
export function integer(description: string): JsonSchema {
  return { type: "integer", description };
}

/** Yes or no. */
export function flag(description: string): JsonSchema {
  return { type: "boolean", description };
}

/** One of some words, and no other. */
export function oneOf(values: readonly string[], description: string): JsonSchema {
  return { type: "string", enum: values, description };
}

/** The same, or `null`. */
export function orNull(schema: JsonSchema): JsonSchema {
  return { ...schema, type: [schema.type ?? "object", "null"].flat() };
}

/** A list. */
export function listOf(items: JsonSchema, description: string): JsonSchema {
  return { type: "array", items, description };
}

/** An object; what is not named in `optional` is always there. More fields may come in any version. */
export function record(
  properties: Readonly<Record<string, JsonSchema>>,
  { optional = [], description }: { optional?: readonly string[]; description?: string } = {},
): JsonSchema {
  const required = Object.keys(properties).filter((name) => !optional.includes(name));
  return { type: "object", ...(description !== undefined && { description }), properties, required };
}
