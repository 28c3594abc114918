// The stages of a refresh at which a process can pause or be killed, in their order: claimed, reserved, committed,
// sending, answered, saved.
import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";

/** The file system calls of a save, at which a process can kill or stop itself. */
export const DEADLY = {
  writing: { call: "fsyncSync", when: "before" },
  synced: { call: "linkSync", when: "before" },
  linked: { call: "linkSync", when: "after" },
  published: { call: "rmSync", when: "after" },
};

/** The stages of this process. */
export class Stages {
  #still;
  #deadly;
  #signal;
  #inSave = false;
  #go = () => {};
  #say;

  /** @param say receives the stage at which the process pauses */
  constructor(say) {
    this.#say = say;
    for (const call of new Set(Object.values(DEADLY).map((one) => one.call))) this.#guard(call);
    syncBuiltinESMExports();
  }

  /** Configures the next refresh: it pauses at the stage `still` until `go()`, and sends its process a signal at `deadly`. */
  arm({ still, deadly, signal = "SIGKILL" }) {
    this.#still = still;
    this.#signal = signal;
    this.#deadly = DEADLY[deadly];
  }

  go() {
    this.#go();
  }

  /** Wraps a store with these stages. */
  store(store) {
    return {
      ...store,
      reserve: async (key) => {
        const room = await store.reserve(key);
        return { release: () => room.release(), save: (grant, expected) => this.#save(room, grant, expected) };
      },
      lease: (name, work, options) => store.lease(name, async (lease) => work(await this.#lease(lease)), options),
    };
  }

  /** Wraps fetch with a stage before a token request. */
  fetch(send) {
    return async (request, init) => {
      if (request.method === "POST") await this.#reach("sending");
      return send(request, init);
    };
  }

  async #save(room, grant, expected) {
    await this.#reach("answered");
    this.#inSave = true;
    const saved = await room.save(grant, expected).finally(() => {
      this.#inSave = false;
    });
    await this.#reach("saved");
    return saved;
  }

  async #lease(lease) {
    await this.#reach("claimed");
    const commit = async () => {
      await this.#reach("reserved");
      await lease.commit();
      await this.#reach("committed");
    };
    return new Proxy(lease, {
      get(target, name) {
        if (name === "commit") return commit;
        const value = Reflect.get(target, name, target);
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
  }

  async #reach(stage) {
    if (this.#still !== stage) return;
    this.#still = undefined;
    const gone = new Promise((resolve) => {
      this.#go = resolve;
    });
    this.#say(stage);
    await gone;
  }

  #guard(call) {
    const real = fs[call];
    fs[call] = (...args) => {
      this.#dieAt(call, "before");
      const result = real(...args);
      this.#dieAt(call, "after");
      return result;
    };
  }

  #dieAt(call, when) {
    if (!this.#inSave || this.#deadly?.call !== call || this.#deadly.when !== when) return;
    this.#deadly = undefined;
    // The kernel ends or stops the process before this returns.
    process.kill(process.pid, this.#signal);
  }
}
