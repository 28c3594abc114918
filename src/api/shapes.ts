/**
 * Checks whether a response has the shape that the service documents, for `strict`. Reading is lenient without it.
 *
 * The constraints come from `openapi.yaml`; this module only interprets them.
 */

import { MASK } from "../redact.js";
import { shapes } from "./shapes.gen.js";
import type { Check } from "./types.js";

/** The documented constraints of one value: the part of JSON Schema that `openapi.yaml` uses. */
export interface Shape {
  readonly type: "string" | "number" | "integer" | "boolean" | "array" | "object";
  /** Whether the service itself documents null for it. */
  readonly nullable?: boolean;
  /** Whether an object may have this property absent or null. */
  readonly optional?: boolean;
  readonly enum?: readonly string[];
  readonly pattern?: string;
  readonly minimum?: number;
  /** The notation of a string. */
  readonly format?: "ipv4";
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly items?: Shape;
  /** Every property that an object has, and no other. */
  readonly properties?: Readonly<Record<string, Shape>>;
}

/** Where a value breaks the documented shape, and why. */
export type ShapeProblem = {
  /**
   * From the value that was checked to the wrong part of it, such as `last_seen.lat_long[1]`; empty for the value
   * itself. It can hold a name that a server chose, so it must be escaped before it is printed.
   */
  path: string;
  /**
   * The value there, with client secrets masked and deep nesting cut; `undefined` where the property is missing, or not
   * documented, because an undocumented property may hold a secret.
   */
  value: unknown;
  /** The rule that it breaks, to be read after the path: `must be one of active, revoked`, `is missing`. */
  rule: string;
};

/**
 * The documented shapes: an item of each list, and the two objects that describe a list. The order of a device list
 * has a separate shape, because only its fields are documented.
 */
export const SHAPES: Readonly<Record<keyof typeof shapes, Shape>> = shapes;

/**
 * Checks a value of parsed JSON against a documented shape: every required property must be there, and every property
 * that is there must have its documented form.
 *
 * @param checks with `nulls` no property may be absent or null unless the service itself documents null, and with
 * `fields` no property may be there that is not documented
 * @returns the first problem, or `undefined` if there is none
 */
export function checkShape(shape: Shape, value: unknown, checks: ReadonlySet<Check>): ShapeProblem | undefined {
  return check(shape, value, "");

  function check(shape: Shape, value: unknown, path: string): ShapeProblem | undefined {
    if (value === null && shape.nullable) return undefined;
    if (value == null && shape.optional && !checks.has("nulls")) return undefined;
    const rule = value === undefined ? "is missing" : (typeRule(shape, value) ?? valueRule(shape, value));
    if (rule !== undefined) return { path, value: maskedValue(path, value), rule };
    return Array.isArray(value) ? checkItems(shape, value, path) : checkProperties(shape, value, path);
  }

  function checkItems(shape: Shape, items: readonly unknown[], path: string): ShapeProblem | undefined {
    if (shape.items === undefined) return undefined;
    for (const [index, item] of items.entries()) {
      const problem = check(shape.items, item, `${path}[${index}]`);
      if (problem !== undefined) return problem;
    }
    return undefined;
  }

  function checkProperties(shape: Shape, value: unknown, path: string): ShapeProblem | undefined {
    if (shape.properties === undefined) return undefined;
    const own = new Map(Object.entries(value as object));
    const prefix = path === "" ? "" : `${path}.`;
    for (const [name, property] of Object.entries(shape.properties)) {
      const problem = check(property, own.get(name), prefix + name);
      if (problem !== undefined) return problem;
      own.delete(name);
    }
    const [extra] = checks.has("fields") ? own.keys() : [];
    return extra === undefined ? undefined : { path: prefix + extra, value: undefined, rule: "is not documented" };
  }
}

const TYPES: Readonly<Record<Shape["type"], readonly [name: string, is: (value: unknown) => boolean]>> = {
  string: ["a string", (value) => typeof value === "string"],
  number: ["a number", Number.isFinite],
  integer: ["an integer", Number.isInteger],
  boolean: ["a boolean", (value) => typeof value === "boolean"],
  array: ["an array", Array.isArray],
  object: ["an object", (value) => typeof value === "object" && value !== null && !Array.isArray(value)],
};

function typeRule(shape: Shape, value: unknown): string | undefined {
  const [name, is] = TYPES[shape.type];
  if (is(value)) return undefined;
  if (value === null) return "must not be null";
  return shape.nullable ? `must be ${name} or null` : `must be ${name}`;
}

function valueRule(shape: Shape, value: unknown): string | undefined {
  if (typeof value === "string") return stringRule(shape, value);
  if (Array.isArray(value)) return lengthRule(shape, value.length);
  const low = typeof value === "number" && shape.minimum !== undefined && value < shape.minimum;
  return low ? `must be at least ${shape.minimum}` : undefined;
}

function stringRule(shape: Shape, value: string): string | undefined {
  if (shape.enum !== undefined && !shape.enum.includes(value))
    return shape.enum.length === 1 ? `must be ${shape.enum[0]}` : `must be one of ${shape.enum.join(", ")}`;
  if (shape.pattern !== undefined && !new RegExp(shape.pattern, "u").test(value)) return `must match ${shape.pattern}`;
  if (shape.format === "ipv4" && !isIpv4(value)) return "must be an IPv4 address";
  return undefined;
}

function lengthRule({ minItems = 0, maxItems = Number.POSITIVE_INFINITY }: Shape, length: number): string | undefined {
  if (length >= minItems && length <= maxItems) return undefined;
  if (minItems === maxItems) return `must have exactly ${minItems} items`;
  return length < minItems ? `must have at least ${minItems} items` : `must have at most ${maxItems} items`;
}

function isIpv4(text: string): boolean {
  const octets = text.split(".");
  return octets.length === 4 && octets.every((octet) => /^(?:0|[1-9]\d{0,2})$/.test(octet) && Number(octet) <= 255);
}

function maskedValue(path: string, value: unknown): unknown {
  if (value === null || value === undefined) return value;
  return /(?:^|\.)client_secret$/.test(path) ? MASK : maskValue(value, 0);
}

// A server decides how deep an unexpected value nests, so the depth that is copied is bounded.
function maskValue(value: unknown, depth: number): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (depth === 4) return "…";
  if (Array.isArray(value)) return value.map((item) => maskValue(item, depth + 1));
  const parts = Object.entries(value).map(([name, part]) => {
    return [name, name === "client_secret" && part !== null ? MASK : maskValue(part, depth + 1)];
  });
  return Object.fromEntries(parts);
}
