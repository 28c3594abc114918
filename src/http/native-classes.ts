type Classes = Pick<typeof globalThis, "Request" | "Response">;

const descriptorOf = (name: keyof Classes) => Object.getOwnPropertyDescriptor(globalThis, name);
const first = { Request: descriptorOf("Request"), Response: descriptorOf("Response") };

/**
 * A class of the runtime, which ours may have replaced since this module was loaded. On Node to ask for it loads all of
 * `fetch`.
 */
export function nativeClass<Name extends keyof Classes>(name: Name): Classes[Name] {
  const { get, value } = first[name] ?? { value: globalThis[name] };
  if (get === undefined) return value;
  const present = descriptorOf(name);
  const found = get.call(globalThis);
  // Node puts its own class back when it is asked for.
  if (present) Object.defineProperty(globalThis, name, present);
  return found;
}
