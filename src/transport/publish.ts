import type { Channel } from "node:diagnostics_channel";

/**
 * Publishes a message on a channel of `node:diagnostics_channel`, and keeps the channel: Node 20 collects one without
 * subscribers, and what cleans up after it removes a later channel of the same name together with its subscribers.
 */
export function publish(name: string, message: object): void {
  let channel = channels.get(name);
  if (channel === undefined) {
    channel = process.getBuiltinModule("node:diagnostics_channel").channel(name);
    channels.set(name, channel);
  }
  channel.publish(message);
}

const channels = new Map<string, Channel>();
