type FileSystem = typeof import("node:fs");

/** `node:fs`, whose synchronous functions call `before` first; what that throws, the function throws. */
export function spiedFs(real: FileSystem, before: (name: string, args: readonly unknown[]) => void): FileSystem {
  const names = Object.keys(real).filter((name) => name.endsWith("Sync"));
  const wrapped = names.map((name) => {
    const call = (...args: unknown[]): unknown => {
      before(name, args);
      return (real as unknown as Record<string, (...args: unknown[]) => unknown>)[name]?.(...args);
    };
    return [name, call] as const;
  });
  return { ...real, ...Object.fromEntries(wrapped) };
}
