import { escapeText } from "../redact.js";
import { currentRequest } from "./pending-requests.js";
import type { McpProxyOptions } from "./proxy-options.js";

const GAVE_UP = /^Maximum reconnection attempts/;

/** The stream of what a server says unasked: where it breaks off for good, it is opened again once the server answers. */
export class NotificationStream {
  readonly #options: Pick<McpProxyOptions, "http" | "mask" | "onStep" | "onTrouble">;
  #isLost = false;

  constructor(options: Pick<McpProxyOptions, "http" | "mask" | "onStep" | "onTrouble">) {
    this.#options = options;
  }

  /** Takes what the transport says of a failure. */
  onError(error: Error): void {
    const { mask, onStep, onTrouble } = this.#options;
    const flight = currentRequest.getStore();
    const gaveUp = GAVE_UP.test(error.message);
    if (flight) {
      // The earlier error says more than that the attempts are used up.
      if (!gaveUp) flight.trouble = error;
      return;
    }
    onStep(`connection: ${escapeText(mask(error.message)).slice(0, 300)}`);
    if (!gaveUp) return;
    this.#isLost = true;
    onTrouble("the stream of the server's own messages broke off; it is opened again once the server answers");
  }

  /** Has heard that the server is there. */
  onAnswer(): void {
    if (!this.#isLost) return;
    this.#isLost = false;
    const { http, onStep } = this.#options;
    currentRequest
      .run(undefined, () => http.resumeStream(""))
      .catch(() => onStep("server: its own messages are not to be had"));
  }
}
