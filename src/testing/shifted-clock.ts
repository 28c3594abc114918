/**
 * Runs work while the clock of this machine seems to be wrong: what `Date` says is ahead by `aheadMs`. The engine's clock
 * decides about leases, so a driver that sends its own time is seen by this.
 */
export async function withShiftedClock<T>(aheadMs: number, work: () => Promise<T>): Promise<T> {
  const Real = globalThis.Date;
  // A driver takes the time from the global object: only a replacement there reaches it, for as long as the work lasts.
  globalThis.Date = new Proxy(Real, {
    construct: (target, given: unknown[], proxy) =>
      Reflect.construct(target, given.length === 0 ? [Real.now() + aheadMs] : given, proxy),
    get: (target, name, receiver) =>
      name === "now" ? () => Real.now() + aheadMs : Reflect.get(target, name, receiver),
  });
  try {
    return await work();
  } finally {
    globalThis.Date = Real;
  }
}
