import type { Part } from "./faults/round-trip.js";
import { hostGuard } from "./http/request-guard.js";
import { type Listening, listen, type RequestHandler } from "./http/server.js";
import { createRouter, type RouterSettings } from "./router.js";

/** What the origins share. */
export type OriginSettings = Omit<RouterSettings, "parts" | "guard"> & { host: string };

/** The origins that a sandbox listens at: one, or one for each origin of a shape. */
export class Origins {
  readonly #settings: OriginSettings;
  readonly #listening = new Map<string, Listening>();
  readonly #routers = new Map<string, RequestHandler>();

  constructor(settings: OriginSettings) {
    this.#settings = settings;
  }

  /** Listens at a port; requests get no answer before {@link serve}. @returns the origin @throws AgentAuthError `usage` */
  async open(port: number): Promise<string> {
    // The parts need the origin, which is known only once the server listens.
    const listening: Listening = await listen(this.#settings.host, port, async (request, response) => {
      const router = this.#routers.get(listening.origin);
      if (router) await router(request, response);
      else response.destroy();
    });
    this.#listening.set(listening.origin, listening);
    return listening.origin;
  }

  /** Serves an open origin. */
  serve(origin: string, parts: readonly Part[]): void {
    const port = this.#listening.get(origin)?.port ?? 0;
    const guard = hostGuard(this.#settings.host, port);
    this.#routers.set(origin, createRouter({ ...this.#settings, parts, guard }));
  }

  /** Closes all of them, within a second. */
  async close(): Promise<void> {
    await Promise.all([...this.#listening.values()].map((one) => one.close()));
  }
}
