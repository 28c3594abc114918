/** Reports the messages of a channel until the signal fires; `onGap`: the connection was lost and is back. */
export type Subscribe = (
  channel: string,
  onMessage: (message: string) => void,
  onGap: () => void,
  signal: AbortSignal,
) => Promise<void>;

/** What a client of either package has. */
export interface Subscriber {
  connect(): Promise<unknown>;
  on(event: string, listener: (...args: string[]) => void): unknown;
  subscribe(channel: string, listener?: (message: string) => void): Promise<unknown>;
  /** Of `redis`. */
  destroy?(): void;
  disconnect(): void;
}

/**
 * Subscribes with a second connection, because one that subscribes can do nothing else in RESP2.
 *
 * @param duplicate makes a client with the same options that is not connected
 * @param takesListener whether `subscribe` takes the listener; otherwise the client emits `message`
 */
export function subscription(duplicate: () => unknown, takesListener: boolean): Subscribe {
  return async (channel, onMessage, onGap, signal) => {
    const subscriber = duplicate() as Subscriber;
    let isBack = false;
    const onReady = async () => {
      await (takesListener ? subscriber.subscribe(channel, onMessage) : subscriber.subscribe(channel));
      if (isBack) onGap();
      isBack = true;
    };
    // An error without a listener would end the program; the client connects again by itself.
    subscriber.on("error", () => {});
    // A client may be ready before it has subscribed again: what changes in between belongs to the gap.
    subscriber.on("ready", () => onReady().catch(() => {}));
    if (!takesListener) subscriber.on("message", (_channel, message = "") => onMessage(message));
    const aborted = new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
    try {
      await Promise.race([subscriber.connect(), aborted]);
      await aborted;
    } finally {
      close(subscriber);
    }
  };
}

/** Ends the connection of a client. */
export function close(subscriber: Pick<Subscriber, "destroy" | "disconnect">): void {
  try {
    if (subscriber.destroy) subscriber.destroy();
    else subscriber.disconnect();
  } catch {
    // A client that could not connect is closed already.
  }
}
