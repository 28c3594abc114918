import { type AgentAuthError, usageError } from "../../errors.js";
import { isJsonObject } from "../../http/strict-json.js";
import { suggest } from "../../http/suggest.js";
import { quote } from "../../redact.js";
import { parseJson } from "../http/requests.js";
import { FAULT_ENDPOINTS, FAULT_KINDS, type Fault, type FaultKind } from "./faults.js";

export interface FaultField {
  /** The expected value, for messages. */
  expects: string;
  accepts(value: unknown): boolean;
  /** Reads the field from the compact text form. */
  read(text: string): unknown;
}

function numberField(min: number, max: number, whole = true): FaultField {
  return {
    expects: `a${whole ? " whole" : ""} number from ${min} to ${max}`,
    accepts: (value) =>
      typeof value === "number" && (!whole || Number.isInteger(value)) && value >= min && value <= max,
    read: (written) => (written.trim() === "" ? written : Number(written)),
  };
}

function textField(expects: string, pattern: RegExp): FaultField {
  return { expects, accepts: (value) => typeof value === "string" && pattern.test(value), read: (written) => written };
}

/** Any JSON; what is not JSON reads as `undefined`. */
const jsonField: FaultField = { expects: "JSON", accepts: (value) => value !== undefined, read: parseJson };

const namesField: FaultField = {
  expects: "a list of field names",
  accepts: (value) =>
    Array.isArray(value) && value.length > 0 && value.every((name) => typeof name === "string" && name !== ""),
  read: (written) => written.split("+"),
};

const MAX_MS = 3_600_000;
const countField = numberField(0, 1_000_000_000);

const SELECTOR_FIELDS: Readonly<Record<string, FaultField>> = {
  path: textField(
    `pool, domain, device, ${FAULT_ENDPOINTS.join(", ")} or the beginning of a path`,
    new RegExp(`^(pool|domain|device|${FAULT_ENDPOINTS.join("|")}|/.*)$`),
  ),
  after: countField,
  times: countField,
  every: numberField(1, 1_000_000_000),
  probability: numberField(0, 1, false),
  offset: numberField(0, Number.MAX_SAFE_INTEGER),
};

/** The fields of one kind: `main` is what `kind=value` sets in the compact form, `required` have no default. */
export interface FaultShape {
  fields: Readonly<Record<string, FaultField>>;
  main?: string;
  required?: readonly string[];
}

const driftShape: FaultShape = { fields: { count: numberField(1, 100_000), position: countField }, main: "count" };

/** The kinds that have fields besides the selectors. */
const EFFECT_SHAPES: { readonly [K in FaultKind]?: FaultShape } = {
  status: {
    fields: {
      status: numberField(200, 599),
      retryAfter: textField("a header value", /^[\x20-\x7e]*$/),
      body: textField("service, html or empty", /^(service|html|empty)$/),
    },
    main: "status",
    required: ["status"],
  },
  "slow-headers": { fields: { ms: numberField(0, MAX_MS) }, main: "ms", required: ["ms"] },
  "slow-body": { fields: { bytes: numberField(1, 1_000_000), ms: numberField(0, MAX_MS) }, main: "bytes" },
  "bad-offset": { fields: { value: jsonField }, main: "value", required: ["value"] },
  insert: driftShape,
  delete: driftShape,
  "page-size": { fields: { size: numberField(1, 1_000_000) }, main: "size", required: ["size"] },
  "missing-fields": { fields: { fields: namesField }, main: "fields" },
  "wrong-envelope": { fields: { body: jsonField }, main: "body", required: ["body"] },
  redirect: {
    fields: { location: textField("a header value", /^[\x21-\x7e]+$/), status: numberField(300, 399) },
    main: "location",
    required: ["location"],
  },
  "empty-page": { fields: { pages: numberField(1, 10_000) }, main: "pages" },
  "hostile-text": { fields: { text: textField("text", /^/) }, main: "text" },
  // RFC 6749, section 3.3.
  "step-up": {
    fields: { scope: textField("a scope", /^[\x21\x23-\x5b\x5d-\x7e]+$/) },
    main: "scope",
    required: ["scope"],
  },
};

/** The fields of a kind, the selectors included. @throws AgentAuthError `usage` where there is no such kind */
function findShape(kind: unknown): FaultShape {
  if (typeof kind === "string" && Object.hasOwn(FAULT_KINDS, kind)) {
    const shape = EFFECT_SHAPES[kind as FaultKind];
    return { ...shape, fields: { ...SELECTOR_FIELDS, ...shape?.fields } };
  }
  throw faultError("kind", kind, "a kind of fault", `use one of: ${Object.keys(FAULT_KINDS).join(", ")}`);
}

/**
 * Checks that a value is a fault.
 *
 * @throws AgentAuthError `usage` that names the field, its value and the expected one
 */
export function checkFault(value: unknown): Fault {
  if (!isJsonObject(value))
    throw faultError("fault", value, "an object with a kind", 'for example {"kind":"status","status":503}');
  const { kind, ...given } = value;
  const shape = findShape(kind);
  const present = Object.entries(given).filter(([, entry]) => entry !== undefined);
  for (const [name, entry] of present) checkField(name, entry, findField(shape, name, name, kind));
  for (const name of shape.required ?? []) {
    if (given[name] === undefined)
      throw faultError(name, given[name], `given for ${String(kind)}`, `add ${name}: ${shape.fields[name]?.expects}`);
  }
  return structuredClone({ kind, ...Object.fromEntries(present) }) as Fault;
}

/** A field of a kind. @throws AgentAuthError `usage` that quotes its name as written where the kind has none */
function findField({ fields }: FaultShape, name: string, written: string, kind: unknown): FaultField {
  const field = Object.hasOwn(fields, name) ? fields[name] : undefined;
  if (field) return field;
  const names = Object.keys(fields);
  const suggestion = suggest(written, names);
  const more = suggestion === undefined ? ` of ${kind}` : `; did you mean ${suggestion}?`;
  throw usageError(`fault: unknown field ${quote(written)}${more}`, `use one of: ${names.join(", ")}`);
}

/** @param shown the value as messages quote it */
function checkField(name: string, value: unknown, { accepts, expects }: FaultField, shown = value): void {
  if (!accepts(value)) throw faultError(name, shown, expects, `give ${name} as ${expects}`);
}

function faultError(name: string, value: unknown, expects: string, hint: string): AgentAuthError {
  const shown = value === undefined ? "it is missing" : `${quote(value)} is not`;
  return usageError(`fault: ${quote(name)} must be ${expects}, ${shown}`, hint);
}

// A value may hold colons and commas (an address, JSON); only those before "name=" separate.
const HEAD = /^([a-z-]+|\d+)(?:=(.*?))?(?::(?=[a-z-]+=)(.*))?$/is;
const BETWEEN = /,(?=[a-z-]+=)/i;
const EXAMPLE = "write it like 503, status=429:times=3,retry-after=2 or reset-mid-body:probability=0.2, or as JSON";

/**
 * Reads a fault from the compact form of the command line, `kind[=value][:field=value,…]`, or from JSON. A number
 * alone is an HTTP status; `retry-after` and `retryAfter` are the same; a list is joined by `+`.
 *
 * @throws AgentAuthError `usage` that names the field, its value and the expected one
 */
export function parseFault(text: string): Fault {
  const trimmed = text.trim();
  if (trimmed.startsWith("{")) {
    const fault = jsonField.read(trimmed);
    if (fault === undefined) throw faultError("fault", trimmed, "JSON", EXAMPLE);
    return checkFault(fault);
  }
  const [, head = "", value, rest] = HEAD.exec(trimmed) ?? [];
  if (head === "") throw faultError("fault", text, "a kind, then its fields", EXAMPLE);
  const kind = /^\d/.test(head) ? "status" : head;
  const shape = findShape(kind);
  const fault: Record<string, unknown> = { kind };
  const main = kind === head ? value : head;
  if (main !== undefined) setField(fault, shape, shape.main ?? "value", main);
  for (const pair of rest === undefined ? [] : rest.split(BETWEEN)) {
    const at = pair.indexOf("=");
    setField(fault, shape, pair.slice(0, at), pair.slice(at + 1));
  }
  return checkFault(fault);
}

function setField(fault: Record<string, unknown>, shape: FaultShape, written: string, value: string): void {
  const name = written.replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
  const field = findField(shape, name, written, fault["kind"]);
  fault[name] = field.read(value);
  // An unreadable value is quoted as it was written.
  checkField(written, fault[name], field, value);
}
