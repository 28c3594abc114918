import { system } from "./system.js";

/** The environment of a run; an empty variable is unset. */
export type Env = Readonly<Record<string, string | undefined>>;

/** The environment as the system looks names up: on Windows `Https_Proxy` is `HTTPS_PROXY`, as it is in `process.env`. */
export function lookupByPlatform<T extends Env>(env: T): T {
  if (system.name !== "win32") return env;
  const names = new Map(Object.keys(env).map((name) => [name.toUpperCase(), name]));
  return new Proxy(env, {
    get: (target, name) => {
      const key = typeof name === "string" && !Object.hasOwn(target, name) ? names.get(name.toUpperCase()) : undefined;
      return Reflect.get(target, key ?? name);
    },
  });
}

/** A copy of an environment with one variable; on Windows other spellings of its name are left out. */
export function withVariable(env: Env, name: string, value: string): NodeJS.ProcessEnv {
  const isSame = (one: string) => system.name === "win32" && one.toUpperCase() === name.toUpperCase();
  return { ...Object.fromEntries(Object.entries(env).filter(([one]) => !isSame(one))), [name]: value };
}

/** A copy of an environment without the variables of agentauth, which may hold credentials. */
export function withoutOurs(env: Env): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !name.toUpperCase().startsWith("AGENTAUTH_")));
}
