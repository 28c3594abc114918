import type { EventStore, JSONRPCMessage } from "@modelcontextprotocol/server";

interface StoredEvent {
  id: string;
  stream: string;
  message: JSONRPCMessage;
}

const MAX_EVENTS = 1000;

/** The last events of a session, for clients that resume a stream. */
export function createEventStore(): EventStore {
  const events: StoredEvent[] = [];
  let last = 0;
  const streamOf = (id: string) => events.find((event) => event.id === id)?.stream;
  return {
    async storeEvent(stream, message) {
      last += 1;
      const id = `event_${last}`;
      events.push({ id, stream, message });
      if (events.length > MAX_EVENTS) events.shift();
      return id;
    },
    getStreamIdForEventId: async (id) => streamOf(id),
    async replayEventsAfter(id, { send }) {
      const stream = streamOf(id);
      if (stream === undefined) throw new Error("the event is unknown");
      const after = events.slice(events.findIndex((event) => event.id === id) + 1);
      for (const event of after)
        if (event.stream === stream && "jsonrpc" in event.message) await send(event.id, event.message);
      return stream;
    },
  };
}
