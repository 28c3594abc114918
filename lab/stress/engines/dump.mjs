// What somebody reads who has a copy of the engine: no secret, no name of a user, no address.

import { randomUUID } from "node:crypto";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { AgentClient } from "../dist.mjs";
import { loginMethod } from "../sessions.mjs";
import { must } from "../tools.mjs";
import { inEngines, missingEngine } from "./engines.mjs";
import { openFleet } from "./fleet.mjs";
import { connect, openStore } from "./store.mjs";

/** The scenario. */
export const dump = {
  title: "A copy of the engine",
  header: ["engine", "users", "bytes read", "texts looked for", "found", "found without sealing"],
  unavailable: missingEngine,
  run,
};

const USERS = 5;

/** @returns the rows of its table */
async function run() {
  const rows = [];
  await inEngines(["redis", "postgres"], async (_, engine) => {
    const fleet = await openFleet({ engine, users: USERS });
    const link = await connect(engine.address);
    try {
      const worker = await fleet.worker();
      const texts = new Set([new URL(fleet.server).host, fleet.tenant, ...fleet.profiles]);
      for (let round = 0; round < 3; round++) {
        for (const secret of secretsOf(await fleet.grants())) texts.add(secret);
        fleet.expire();
        await worker.ask(fleet.request());
      }
      for (const secret of secretsOf(await fleet.grants())) texts.add(secret);
      const sealed = await copyOf(engine);
      const found = [...texts].filter((text) => sealed.includes(text));
      must(found.length === 0, () => `${engine.name}: ${found.length} of ${texts.size} texts are readable`);
      // The same login in the clear: the search must be able to find something.
      const clear = await unsealed(fleet, link);
      const open = await copyOf(engine);
      const readable = clear.filter((text) => open.includes(text));
      must(readable.length === clear.length, `${engine.name}: the search does not find what is there`);
      rows.push([engine.name, USERS, sealed.length, texts.size, found.length, readable.length]);
    } finally {
      await link.close();
      await fleet.close();
    }
  });
  return rows;
}

function secretsOf(grants) {
  return grants.flatMap(({ tokens, client }) => [
    tokens.accessToken.reveal(),
    tokens.refreshToken.reveal(),
    client.clientId,
    ...(client.clientSecret === undefined ? [] : [client.clientSecret.reveal()]),
  ]);
}

async function unsealed({ server }, { driver }) {
  const profile = `clear-${randomUUID()}`;
  const store = openStore(driver, { tenant: "clear", seal: "none" });
  await new AgentClient({ store, profile, login: loginMethod }).login(server);
  return [profile, ...secretsOf(await store.list())];
}

/** All that the engine has stored: its files, or its dump where the files are not text. */
async function copyOf(engine) {
  if (engine.address.kind === "postgres") return engine.dump();
  await engine.command("SAVE");
  return readdirSync(engine.folder, { recursive: true })
    .map((name) => join(engine.folder, name))
    .filter((path) => statSync(path).isFile())
    .map((path) => readFileSync(path, "latin1"))
    .join("\n");
}
