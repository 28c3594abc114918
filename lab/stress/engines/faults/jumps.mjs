// The clock of the engine jumps forward: a machine that was suspended, a first step of NTP, a failover.
import { pause } from "../../tools.mjs";
import { beginRefresh, faultScenario, WINDOW_MS } from "../faults.mjs";
import { missingJump } from "../processes.mjs";
import { startRedis } from "../redis.mjs";

const TRIES = 200;
const STOP_MS = 3000;
const SECONDS = { "10 s": 10, "1 h": 3600 };

/** The scenario. */
export const jumps = faultScenario({
  title: "Clocks of engines that jump forward during a refresh",
  lanes: 5,
  kinds: [
    ...Object.entries(SECONDS).flatMap(([text, seconds]) =>
      ["patient", "fast"].flatMap((takeover) => {
        const short = takeover === "patient" && seconds > 1000 ? ["redis"] : undefined;
        const common = { users: 4, engine: { jumps: true }, worker: { takeover }, needs: missingJump };
        return [
          { what: `by ${text}, ${takeover}; others wait`, short, ...common, trial: jump(seconds, true) },
          { what: `by ${text}, ${takeover}; others come later`, ...common, trial: jump(seconds, false) },
        ];
      }),
    ),
    {
      what: "by 10 s at a failover, while a process stands still for up to 3 s",
      engines: ["redis"],
      users: 4,
      grace: 30,
      engine: { jumps: true },
      worker: { movable: true },
      needs: missingJump,
      tolerates: "a write that the failover lost",
      trial: failOver,
    },
  ],
});

/** The replica that becomes the primary has another clock. */
async function failOver(arena, draw) {
  const { fleet, engine: primary } = arena;
  const replica = await startRedis({ replicaOf: primary.target, jumps: true });
  await replica.synced();
  replica.ahead = (primary.ahead ?? 0) + SECONDS["10 s"] * 1000;
  replica.clock.set(replica.ahead);
  const calls = fleet.ask(TRIES);
  await pause(draw.fraction() * WINDOW_MS);
  const [stopped] = fleet.crew;
  stopped.signal("SIGSTOP");
  await primary.close();
  await replica.promote();
  arena.engine = replica;
  const still = pause(draw.fraction() * STOP_MS).then(() => stopped.signal("SIGCONT"));
  await fleet.moveTo(replica);
  await still;
  return Promise.all(calls);
}

function jump(seconds, areWaiting) {
  return async ({ fleet, engine }, draw) => {
    // A process that has not measured the clock again since the last jump takes tokens for younger by that.
    fleet.ahead += engine.ahead ?? 0;
    const [holder, ...others] = fleet.crew;
    const { own } = await beginRefresh(fleet, holder, TRIES);
    const early = areWaiting ? fleet.ask(TRIES, others) : [];
    await pause((draw.fraction() * WINDOW_MS) / 2);
    engine.ahead = (engine.ahead ?? 0) + seconds * 1000;
    engine.clock.set(engine.ahead);
    const late = areWaiting ? [] : fleet.ask(TRIES, others);
    return Promise.all([own, ...early, ...late]);
  };
}
