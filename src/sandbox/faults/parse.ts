import { checkFault, type FaultShape, faultError, jsonField, shapeOf, unknownField } from "./check-fault.js";
import type { Fault } from "./faults.js";

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
  const shape = shapeOf(kind);
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
  const field = Object.hasOwn(shape.fields, name) ? shape.fields[name] : undefined;
  if (!field) throw unknownField(written, String(fault["kind"]), shape);
  const read = field.read(value);
  // The check of an unreadable value quotes the text as written.
  if (!field.accepts(read)) throw faultError(written, value, field.expects, `give ${written} as ${field.expects}`);
  fault[name] = read;
}
