// Type-checks the library in a strict program without Node types.
import {
  type Device,
  type ErrorCode,
  isAgentAuthError,
  type ListOptions,
  ManagementClient,
  type Page,
  Secret,
} from "agentauth";

const service = new ManagementClient({ baseUrl: "https://agentauth.example", token: () => new Secret("sample") });
const options: ListOptions = { pageSize: 100, concurrency: 4, onDrift: ({ field, from, to }) => [field, from, to] };

export async function titles(pool_id: string): Promise<string[]> {
  const found: string[] = [];
  const sort = { field: "last_seen", direction: "desc" } as const;
  for await (const device of service.devices.list({ pool_id }, { ...options, sort })) {
    const checked: Device = device;
    found.push(checked.title ?? "");
  }
  return found;
}

/** The first program of a user: ids go from one list to the next, and into a map, as they are. */
export async function inventory(account_id: string): Promise<Map<string, string[]>> {
  const found = new Map<string, string[]>();
  for await (const domain of service.domains.list({ account_id })) {
    for await (const pool of service.pools.list({ domain_id: domain.id })) {
      const devices = await service.devices.list({ pool_id: pool.id }).toArray();
      found.set(
        pool.id,
        devices.map((device) => `${device.type.toUpperCase()} ${device.id} ${device.pool_id}`),
      );
    }
  }
  return found;
}

export async function firstPage(domain_id: string): Promise<Page<object> | undefined> {
  for await (const page of service.pools.list({ domain_id }).pages()) return page;
  return undefined;
}

export async function raw(account_id: string): Promise<number> {
  const { data } = await service.client.GET("/api/v1/domain", { params: { query: { account_id } } });
  return data === undefined ? 0 : data.summaries.length + data.pagination.item_count;
}

export function resumeOf(error: unknown): [ErrorCode, number | undefined] | undefined {
  return isAgentAuthError(error) ? [error.code, error.resume] : undefined;
}

export function adviceFor(code: ErrorCode): string {
  switch (code) {
    case "timeout":
    case "rate_limited":
      return (code satisfies "timeout" | "rate_limited") && "later";
    case "access_denied":
      return code satisfies "access_denied";
    // @ts-expect-error no code of this package
    case "time_out":
      return "";
    default: {
      // @ts-expect-error the codes above are excluded
      const excluded: Extract<typeof code, "timeout"> = code;
      const text: string = code;
      return text + excluded;
    }
  }
}

export const isUnknown = (code: ErrorCode): boolean => (code as string) === "a_code_of_a_newer_service";

export const secondPage = () =>
  service.client.GET("/api/v1/device", { params: { query: { pool_id: "pool_1", "pagination[offset]": 50 } } });
service.devices.list({ pool_id: "pool_1" }, { strict: ["shape", "nulls"] });
service.devices.list({ pool_id: "pool_1" }, { strict: "all" });
// @ts-expect-error a title may be absent
export const lengthOf = (device: Device): number => device.title.length;
// @ts-expect-error there is no such check
service.devices.list({ pool_id: "pool_1" }, { strict: ["ordre"] });
// @ts-expect-error a device list needs its pool
service.devices.list({ domain_id: "domain_1" });
// @ts-expect-error devices are sorted by four fields
service.devices.list({ pool_id: "pool_1" }, { sort: { field: "city" } });
