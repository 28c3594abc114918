import { inspect } from "node:util";

/** Every way in which a value may come to be seen: printed, inspected, serialised, with its causes. */
export function shownBy(value: unknown): string {
  const deep = { depth: 20, showHidden: false, maxStringLength: null, maxArrayLength: null };
  const own = [inspect(value, deep), String(value), JSON.stringify(value) ?? "", `${inspect({ value }, deep)}`];
  if (value instanceof Error)
    own.push(value.message, value.stack ?? "", value.cause === undefined ? "" : shownBy(value.cause));
  return own.join("\n");
}
