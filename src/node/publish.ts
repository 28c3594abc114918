/**
 * Publishes a message on a channel of `node:diagnostics_channel`, and keeps the channel: Node 20 collects one that nobody
 * has subscribed to, and what cleans up after it removes a later channel of the same name together with its subscribers.
 */
export function publish(name: string, message: object): void {
  const channel = process.getBuiltinModule("node:diagnostics_channel").channel(name);
  if (!channel.hasSubscribers) channel.subscribe(() => {});
  channel.publish(message);
}
