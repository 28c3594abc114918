import type { IncomingMessage } from "node:http";
import { isAgentAuthError } from "../errors.js";
import { isJsonObject } from "../http/strict-json.js";
import { parseFault } from "./faults/check-fault.js";
import type { FaultController } from "./faults/controller.js";
import type { Fault } from "./faults/faults.js";
import type { RoundTrip, SandboxPart } from "./faults/round-trip.js";
import type { SandboxClock } from "./http/clock.js";
import type { RequestLog } from "./http/request-log.js";
import { parseJson, readBody, tokenGuard } from "./http/requests.js";
import { jsonResponse, Refusal, requireMethod, type SandboxResponse } from "./http/sandbox-response.js";
import type { SandboxMachine } from "./oauth/machine.js";

const PREFIX = "/_sandbox";
const MAX_BODY = 64 * 1024;

export interface AdminApiSettings {
  controlToken: string;
  faults: FaultController;
  requests: RequestLog;
  clock: SandboxClock;
  machines: SandboxMachine | undefined;
  shutdown: () => void;
}

type Action = (settings: AdminApiSettings, roundTrip: RoundTrip) => SandboxResponse | Promise<SandboxResponse>;

const ACTIONS: Readonly<Record<string, Readonly<Record<string, Action>>>> = {
  "/faults": {
    GET: ({ faults }) => jsonResponse({ status: "success", faults: faults.list() }),
    POST: async ({ faults }, { request }) =>
      jsonResponse({ status: "success", faults: addFaults(faults, await readJson(request)) }, 201),
    DELETE({ faults }) {
      faults.clear();
      return jsonResponse({ status: "success", faults: [] });
    },
  },
  "/requests": {
    GET: ({ requests }) => jsonResponse({ status: "success", total: requests.total, requests }),
  },
  "/clock": {
    GET: ({ clock }) => jsonResponse({ status: "success", now: clock.now() }),
    POST: async ({ clock }, { request }) =>
      jsonResponse({ status: "success", now: advanceClock(clock, await readJson(request)) }),
  },
  "/machine": {
    GET: ({ machines }) => jsonResponse({ status: "success", machine: machines ? describeMachine(machines) : null }),
  },
  "/shutdown": {
    POST({ shutdown }, { response }) {
      response.once("close", shutdown);
      response.shouldKeepAlive = false;
      return jsonResponse({ status: "success" }, 202);
    },
  },
};

/** The endpoints below `/_sandbox` with which another process controls the sandbox. */
export function adminApi(settings: AdminApiSettings): SandboxPart {
  const authenticate = tokenGuard(settings.controlToken);
  return {
    owns: (path) => path === PREFIX || path.startsWith(`${PREFIX}/`),
    faulty: false,
    unlogged: true,
    handle(roundTrip) {
      authenticate(roundTrip.request);
      const { method, path } = roundTrip;
      const action = path.slice(PREFIX.length);
      const actions = Object.hasOwn(ACTIONS, action) ? ACTIONS[action] : undefined;
      if (!actions) throw new Refusal(404, "not_found", "there is nothing at this path");
      requireMethod(method, Object.keys(actions));
      return actions[method]?.(settings, roundTrip);
    },
  };
}

/** The credentials for the machine grants, with an assertion and an id token that are currently valid. */
function describeMachine(machine: SandboxMachine): object {
  const { secretClient, keyClient, workloadClient, idp } = machine;
  return {
    issuer: machine.issuer,
    client_id: secretClient.clientId,
    client_secret: secretClient.clientSecret,
    key_client_id: keyClient.clientId,
    private_key: keyClient.privateKey,
    key_id: keyClient.keyId,
    workload_client_id: workloadClient.clientId,
    assertion: machine.assertion(),
    idp_issuer: idp.issuer,
    idp_native_client_id: idp.nativeClient.clientId,
    idp_token_endpoint: idp.tokenEndpoint,
    idp_client_id: idp.clientId,
    idp_client_secret: idp.clientSecret,
    id_token: idp.idToken(),
  };
}

/** A body is a fault, a list of faults, or the compact form of one as a JSON string. */
function addFaults(faults: FaultController, body: unknown) {
  try {
    return faults.add(typeof body === "string" ? parseFault(body) : (body as Fault | Fault[]));
  } catch (error) {
    if (!isAgentAuthError(error)) throw error;
    const message = error.hint === undefined ? error.message : `${error.message}; ${error.hint}`;
    throw new Refusal(400, "invalid_value", message);
  }
}

function advanceClock(clock: SandboxClock, body: unknown): number {
  const ms = isJsonObject(body) ? body["advance_ms"] : undefined;
  if (typeof ms === "number" && Number.isSafeInteger(ms) && ms >= 0) return clock.advance(ms);
  throw new Refusal(400, "invalid_value", "advance_ms must be whole milliseconds, 0 or more");
}

async function readJson(request: IncomingMessage): Promise<unknown> {
  // Without a CORS preflight a web page can send a form or plain text, but not JSON.
  if (!/^application\/json *(;|$)/i.test(request.headers["content-type"] ?? "")) {
    throw new Refusal(415, "bad_request", "send the body as application/json");
  }
  const value = parseJson((await readBody(request, MAX_BODY)).toString("utf8"));
  if (value === undefined) throw new Refusal(400, "bad_request", "the body is not JSON");
  return value;
}
