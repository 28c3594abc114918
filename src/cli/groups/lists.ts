import { LISTS } from "../commands/all.gen.js";
import { run } from "../execute.js";
import type { Host } from "../runtime/host.js";

/** {@link run} with the commands of this bundle. */
export function runProgram(argv: readonly string[], host: Host): Promise<number> {
  own();
  return run(argv, host, LISTS);
}

import { HttpHeaders } from "../../http/http-headers.js";
import { HttpRequest } from "../../http/http-request.js";
import { HttpResponse } from "../../http/http-response.js";
export function own() {
  Object.assign(globalThis, { Headers: HttpHeaders, Request: HttpRequest, Response: HttpResponse });
}
