import { Peer, type Reply, type Seen } from "../../helpers/peer.js";

/** The path of every list of devices. */
export const DEVICES = "/api/v1/device";

/** A management service with a sample list of devices. */
export class Service extends Peer {
  /** Number of devices. */
  count = 6;
  /** Devices per page. */
  pageSize = 2;

  /** The correct response to the request for a page. */
  page(request: Seen): { status: string; summaries: Record<string, unknown>[]; pagination: Record<string, unknown> } {
    const query = new URL(request.url, this.origin).searchParams;
    const offset = Number(query.get("pagination[offset]") ?? 0);
    const size = Math.min(this.pageSize, Number(query.get("pagination[page_size]") ?? this.pageSize));
    const end = Math.min(offset + size, this.count);
    return {
      status: "success",
      summaries: Array.from({ length: Math.max(0, end - offset) }, (_, nth) => this.device(offset + nth)),
      pagination: {
        item_count: this.count,
        item_start: offset + 1,
        item_end: end,
        page_offset: offset,
        page_size: size,
        next_page_offset: end < this.count ? end : null,
      },
    };
  }

  /** One device. */
  device(nth: number): Record<string, unknown> {
    return { id: `dev_${nth}`, type: "device", title: `Device ${nth}`, status: "active" };
  }

  /** Serves the list. `alter` changes each page, or returns a reply that replaces it. */
  list(alter: (page: ReturnType<Service["page"]>, offset: number, nth: number) => unknown): void {
    this.routes[DEVICES] = (request, nth) => {
      const page = this.page(request);
      const reply = alter(page, page.pagination["page_offset"] as number, nth) as Reply | undefined;
      return reply ?? { json: page };
    };
  }
}
